import { ConfigurationError, RunNotFoundError } from '../../vocabulary/errors.ts'
import type { StartCommand } from '../../vocabulary/events/command.ts'
import type { UserPart } from '../../vocabulary/model/content.ts'
import { parseRunId } from '../../vocabulary/values/ids.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { deepFreeze } from '../../vocabulary/values/deep-freeze.ts'
import type { Agent } from '../agent/agent.ts'
import { CoordinatorRegistry } from '../coordinator/coordinator-registry.ts'
import type { RunCoordinator } from '../coordinator/run-coordinator.ts'
import { agentRegistry } from '../definition/registered-agents.ts'
import type { RuntimeParts } from '../definition/runtime-parts.ts'
import { forkOf, type ForkOptions } from '../fork/fork.ts'
import type { Waiting } from '../reading/follow-run.ts'
import { interruptedRuns, type InterruptedOptions } from '../reading/listed-runs.ts'
import { pastOf } from '../session/session.ts'
import { startCommand } from '../session/start-command.ts'
import { defaultHost } from './host.ts'
import { runIdMaker } from './run-ids.ts'
import { runOf, type Run } from './run.ts'
import type { InContext, ResumeOptions, RunOptions, RuntimeOptions } from './runtime.ts'

/** The runs of a runtime: starts, forks and finds them, and makes their handles. */
export class RuntimeRuns {
  readonly coordinators: CoordinatorRegistry
  /** What waiting for a run needs. */
  readonly waiting: Waiting
  readonly #parts: RuntimeParts

  constructor({
    ledger,
    agents: known = [],
    prices = {},
    approval,
    onDrift = 'continue',
    host: given = {},
  }: RuntimeOptions) {
    const host = { ...defaultHost, ...omitUndefined({ ...given }) }
    const agents = agentRegistry(prices, approval)
    for (const agent of known) agents.register(agent)
    this.#parts = { ledger, host, agents, onDrift, newId: runIdMaker(host) }
    this.coordinators = new CoordinatorRegistry(this.#parts)
    this.waiting = { ledger, clock: host.clock, runs: this.coordinators }
  }

  start(
    agent: Agent<unknown>,
    input: string | readonly UserPart[],
    options: InContext<RunOptions>,
    inputId?: string,
  ): RunCoordinator {
    this.requireOpen()
    const { agents, newId } = this.#parts
    const { register } = agents
    const { limits, modelSettings, whenBusy, subject, context } = options
    const coordinator = this.coordinators.coordinatorOf(newId())
    coordinator.setContext(context)
    const own = { ...omitUndefined({ limits, modelSettings }), register, context }
    const command = deepFreeze(startCommand(coordinator.runId, register(agent), input, own))
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
      this.#parts.host.report(error, `The next run of session ${options.sessionId} could not begin`)
    }
  }

  fork(source: string, options: InContext<ForkOptions>): RunCoordinator {
    this.requireOpen()
    const { ledger, agents, newId } = this.#parts
    const runId = newId()
    const coordinator = this.coordinators.coordinatorOf(runId, options.agent && agents.priced(options.agent))
    coordinator.setContext(options.context)
    const own = { ...options, ...omitUndefined({ edit: deepFreeze(options.edit) }) }
    coordinator.fork(() => forkOf(ledger, { source, runId }, own))
    return coordinator
  }

  interrupted(options: InterruptedOptions): ReturnType<typeof interruptedRuns> {
    return interruptedRuns(this.waiting, options)
  }

  coordinatorFor(text: string, { agent, context }: ResumeOptions): RunCoordinator {
    this.requireOpen()
    const runId = parseRunId(text)
    if (runId === undefined) throw new RunNotFoundError(text)
    if (agent) this.#parts.agents.register(agent)
    const coordinator = this.coordinators.coordinatorOf(runId)
    coordinator.setContext(context)
    return coordinator
  }

  handle<Output>(coordinator: RunCoordinator, agent?: Agent<Output>): Run<Output> {
    const { ledger, host } = this.#parts
    return runOf<Output>(coordinator, agent, {
      runId: coordinator.runId,
      ledger,
      live: coordinator.live,
      errorListener: {
        onThrow: (error) => host.report(error, `A subscriber of run ${coordinator.runId} threw`),
        onObserved: () => coordinator.notice.markObserved(),
        onUnhandledError: (error) => coordinator.notice.onUnhandledError(error),
      },
      retain: () => this.coordinators.retain(coordinator),
    })
  }

  requireOpen(): void {
    if (!this.coordinators.isDrained) return
    throw new ConfigurationError('This runtime has been drained and starts no more runs; create another.')
  }
}
