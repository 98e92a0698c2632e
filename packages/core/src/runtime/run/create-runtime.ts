import { ConfigurationError, RunNotFoundError } from '../../vocabulary/errors.ts'
import { requireOptions } from '../../vocabulary/options/require-options.ts'
import type { Host } from '../../ports/clock.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { StartCommand } from '../../vocabulary/events/command.ts'
import type { UserPart } from '../../vocabulary/model/content.ts'
import { parseRunId, type RunId } from '../../vocabulary/values/ids.ts'
import { numberFrom } from '../../vocabulary/options/option.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { deepFreeze } from '../../vocabulary/values/deep-freeze.ts'
import type { Agent } from '../agent/agent.ts'
import { childRuns, reportToParent, isDescendantOf, type ParentOptions } from './parent-runs.ts'
import { forkOf, type ForkOptions } from '../fork/fork.ts'
import { defaultHost } from './host.ts'
import type { Waiting } from '../reading/follow-run.ts'
import { CoordinatorRegistry } from '../drive/coordinator-registry.ts'
import { messageOf } from '../session/input-message.ts'
import { joinedRun } from './join-run.ts'
import { agentRegistry } from '../definition/registered-agents.ts'
import { interruptedRuns, suspendedRuns, type InterruptedOptions } from '../reading/listed-runs.ts'
import type { RunCoordinator } from '../drive/run-coordinator.ts'
import { runIdMaker } from './run-ids.ts'
import type { RunResult } from '../reading/run-result.ts'
import { runOf, type Run } from './run.ts'
import {
  requireForkOptions,
  requireInterruptedOptions,
  requireResumeOptions,
  requireRunOptions,
  requireRuntimeOptions,
  requireSessionRunOptions,
} from './runtime-options-check.ts'
import type {
  InContext,
  ResumeOptions,
  RunOptions,
  Runtime,
  RuntimeOptions,
  RuntimeSession,
  SessionRunOptions,
} from './runtime.ts'
import { pastOf, sessionView } from '../session/session.ts'
import { settledResult } from './settled-result.ts'
import { startCommand } from './start-command.ts'

/** Puts a runtime together. */
export function createRuntime(options: RuntimeOptions): Runtime {
  requireRuntimeOptions(options)
  const { ledger } = options
  const runs = new RuntimeRuns(options)
  return {
    run(agent, input, ...[own = {}]) {
      requireRunOptions(own)
      return runs.handle(runs.start(agent, input, own))
    },
    session: (id) => sessionOf(id, ledger, runs),
    resume<Output>(runId: string, own: ResumeOptions<Output> = {}) {
      requireResumeOptions('resume', own)
      const coordinator = runs.coordinatorFor(runId, own)
      coordinator.drive({ takeOver: true })
      return runs.handle<Output>(coordinator, own.agent)
    },
    fork<Output>(source: string, own: InContext<ForkOptions>) {
      requireForkOptions(own)
      return runs.handle<Output>(runs.fork(source, own))
    },
    async settle(runId, toolCallId, result, own = {}) {
      requireResumeOptions('settle', own)
      return await runs
        .coordinatorFor(runId, own)
        .send({ type: 'settle', toolCallId, ...settledResult(result) })
    },
    suspended: () => suspendedRuns(ledger),
    interrupted(own = {}) {
      requireInterruptedOptions(own)
      return runs.interrupted(own)
    },
    async drain(graceMs = 5_000) {
      requireOptions('drain', numberFrom(0), graceMs, 'graceMs')
      return await runs.drain(graceMs)
    },
    idle: () => runs.coordinators.idle(),
  }
}

/** The runs that a runtime holds, and what they are started and driven with. */
class RuntimeRuns {
  readonly coordinators: CoordinatorRegistry
  readonly #ledger: Ledger
  readonly #host: Host
  readonly #register: (agent: Agent<unknown>) => Agent<unknown>
  readonly #priced: (agent: Agent<unknown>) => Agent<unknown>
  readonly #newId: ReturnType<typeof runIdMaker>
  #draining = false

  constructor({
    ledger,
    agents = [],
    prices = {},
    approval,
    onDrift = 'continue',
    host: given = {},
  }: RuntimeOptions) {
    const host: Host = { ...defaultHost, ...omitUndefined({ ...given }) }
    const { register, find, priced } = agentRegistry(prices, approval)
    for (const agent of agents) register(agent)
    this.#ledger = ledger
    this.#host = host
    this.#register = register
    this.#priced = priced
    this.#newId = runIdMaker(host)
    const isDrained = (): boolean => this.#draining
    const parents: ParentOptions = {
      ledger,
      host,
      register,
      find,
      isDrained,
      awaitedChildren: new Set(),
      coordinators: () => this.coordinators,
    }
    this.coordinators = new CoordinatorRegistry({
      ledger,
      host,
      onDrift,
      newKey: this.#newId,
      findAgent: find,
      isDrained,
      children: (context) => childRuns(parents, context),
      isDescendantOf: (runId, root) => isDescendantOf(ledger, runId, root),
      onEnd: (state, context) => reportToParent(state, parents, context),
    })
  }

  /** What waiting for a run needs. */
  get waiting(): Waiting {
    return {
      ledger: this.#ledger,
      host: this.#host,
      isDrained: () => this.#draining,
      isDriven: (runId: RunId) => this.coordinators.isDriven(runId),
    }
  }

  start(
    agent: Agent<unknown>,
    input: string | readonly UserPart[],
    options: InContext<RunOptions>,
    inputId?: string,
  ): RunCoordinator {
    this.requireOpen()
    const { limits, modelSettings, whenBusy, subject, context } = options
    const coordinator = this.coordinators.coordinatorOf(this.#newId())
    coordinator.setContext(context)
    const own = { ...omitUndefined({ limits, modelSettings }), register: this.#register, context }
    const command = deepFreeze(startCommand(coordinator.runId, this.#register(agent), input, own))
    const { sessionId, from, edit, quietMs } = options
    const past = deepFreeze(omitUndefined({ sessionId, from, edit, whenBusy, quietMs }))
    const prepare = async (): Promise<StartCommand> => ({
      ...command,
      ...(await pastOf(this.waiting, past)),
      ...omitUndefined({ subject, receipt: inputId }),
    })
    coordinator.start(prepare, whenBusy === 'wait')
    return coordinator
  }

  /** Starts a run when the one before it in its session has ended. A failure is reported: no caller waits for it. */
  startLater(...[agent, input, options, inputId]: Parameters<RuntimeRuns['start']>): void {
    try {
      this.start(agent, input, { ...options, whenBusy: 'wait' }, inputId)
    } catch (error) {
      this.#host.report(error, `The next run of session ${options.sessionId} could not begin`)
    }
  }

  fork(source: string, options: InContext<ForkOptions>): RunCoordinator {
    this.requireOpen()
    const runId = this.#newId()
    const coordinator = this.coordinators.coordinatorOf(runId, options.agent && this.#priced(options.agent))
    coordinator.setContext(options.context)
    const own = { ...options, ...omitUndefined({ edit: deepFreeze(options.edit) }) }
    coordinator.fork(() => forkOf(this.#ledger, { source, runId }, own))
    return coordinator
  }

  interrupted(options: InterruptedOptions): ReturnType<typeof interruptedRuns> {
    const isDriven = (runId: RunId): Promise<boolean | undefined> => this.coordinators.isDriven(runId)
    return interruptedRuns(this.#ledger, { ...options, isDriven, now: () => this.#host.clock.now() })
  }

  coordinatorFor(text: string, { agent, context }: ResumeOptions): RunCoordinator {
    this.requireOpen()
    const runId = parseRunId(text)
    if (runId === undefined) throw new RunNotFoundError(text)
    if (agent) this.#register(agent)
    const coordinator = this.coordinators.coordinatorOf(runId)
    coordinator.setContext(context)
    return coordinator
  }

  handle<Output>(coordinator: RunCoordinator, agent?: Agent<Output>): Run<Output> {
    return runOf<Output>(coordinator, agent, {
      runId: coordinator.runId,
      ledger: this.#ledger,
      live: coordinator.live,
      errorListener: {
        onThrow: (error) => this.#host.report(error, `A subscriber of run ${coordinator.runId} threw`),
        onObserved: () => coordinator.notice.markObserved(),
        onUnhandledError: (error) => coordinator.notice.onUnhandledError(error),
      },
      retain: () => this.coordinators.retain(coordinator),
    })
  }

  async drain(graceMs: number): Promise<readonly RunResult[]> {
    this.#draining = true
    const stops = await Promise.allSettled(
      this.coordinators.driving.map((coordinator) => coordinator.drain(graceMs)),
    )
    return stops.flatMap((stop) => (stop.status === 'fulfilled' ? [stop.value] : []))
  }

  requireOpen(): void {
    if (!this.#draining) return
    throw new ConfigurationError('This runtime has been drained and starts no more runs; create another.')
  }
}

function sessionOf(id: string, ledger: Ledger, runs: RuntimeRuns): RuntimeSession {
  if (typeof id !== 'string' || id === '' || !id.isWellFormed() || id.includes('\0')) {
    throw new ConfigurationError(
      'A session needs a name: a text that is not empty, such as a conversation id.',
    )
  }
  return {
    ...sessionView(ledger, id),
    async run<Output, Context>(
      agent: Agent<Output, Context>,
      input: string | readonly UserPart[],
      ...[given = {}]: readonly (InContext<SessionRunOptions> | undefined)[]
    ) {
      requireSessionRunOptions(given)
      const { whenBusy = 'conflict', inputId, ...options } = given
      runs.requireOpen()
      if (whenBusy !== 'join')
        return runs.handle<Output>(runs.start(agent, input, { ...options, sessionId: id, whenBusy }))
      const message = deepFreeze(messageOf(input))
      for (;;) {
        const beginNext = (): void => runs.startLater(agent, input, { ...options, sessionId: id }, inputId)
        const joining = { message, inputId, quietMs: given.quietMs, beginNext }
        const joined = await joinedRun(runs.waiting, runs.coordinators, id, joining)
        if (joined) return runs.handle<Output>(joined)
        const coordinator = runs.start(agent, input, { ...options, sessionId: id }, inputId)
        if (await coordinator.hasBegun()) return runs.handle<Output>(coordinator)
      }
    },
  }
}
