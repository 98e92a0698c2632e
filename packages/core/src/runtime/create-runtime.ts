import { ConfigurationError, RunNotFoundError } from '../errors.ts'
import { isSuspended } from '../machine/effects-of.ts'
import type { Host } from '../ports/clock.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { StartCommand } from '../vocabulary/command.ts'
import type { UserPart } from '../vocabulary/content.ts'
import { parseRunId } from '../vocabulary/ids.ts'
import { present } from '../vocabulary/present.ts'
import type { Agent } from './agent.ts'
import { childRuns, tellParent, worksFor, type ParentOptions } from './parent-runs.ts'
import { forkOf, type ForkOptions } from './fork.ts'
import { defaultHost } from './host.ts'
import { HubRegistry } from './hub-registry.ts'
import { messageOf } from './input-message.ts'
import { joinedRun } from './join-run.ts'
import { knownAgents } from './known-agents.ts'
import { stateOf } from './load-state.ts'
import type { RunHub } from './run-hub.ts'
import { runIdMaker } from './run-ids.ts'
import { withChildren, type RunResult } from './run-result.ts'
import { runOf, type Run } from './run.ts'
import type { RunOptions, Runtime, RuntimeOptions, RuntimeSession, SessionRunOptions } from './runtime.ts'
import { pastOf, sessionView } from './session.ts'
import { settledResult } from './settled-result.ts'
import { startCommand } from './start-command.ts'

/** Puts a runtime together. */
export function createRuntime(options: RuntimeOptions): Runtime {
  const { ledger } = options
  if (typeof ledger?.append !== 'function') {
    throw new ConfigurationError(
      'createRuntime needs a ledger, such as memoryLedger() or sqliteLedger(path).',
    )
  }
  const runs = new RuntimeRuns(options)
  return {
    run: (agent, input, own = {}) => runs.handle(runs.start(agent, input, own)),
    session: (id) => sessionOf(id, ledger, runs),
    resume<Output>(runId: string) {
      const hub = runs.found(runId)
      void hub.resume({ takeOver: true })
      return runs.handle<Output>(hub)
    },
    fork: <Output>(source: string, own: ForkOptions) => runs.handle<Output>(runs.fork(source, own)),
    settle: (runId, toolCallId, result) =>
      runs.found(runId).send({ type: 'settle', toolCallId, ...settledResult(result) }),
    suspended: () => suspendedRuns(ledger),
    drain: (graceMs = 5_000) => runs.drain(graceMs),
    idle: () => runs.hubs.idle(),
  }
}

/** The runs that a runtime holds, and what they are started and driven with. */
class RuntimeRuns {
  readonly hubs: HubRegistry
  readonly #ledger: Ledger
  readonly #host: Host
  readonly #know: (agent: Agent<unknown>) => Agent<unknown>
  readonly #priced: (agent: Agent<unknown>) => Agent<unknown>
  readonly #newId: ReturnType<typeof runIdMaker>
  #draining = false

  constructor({ ledger, agents = [], prices = {}, onDrift = 'continue', host: given = {} }: RuntimeOptions) {
    const host: Host = { ...defaultHost, ...given }
    const { know, named, priced } = knownAgents(prices)
    for (const agent of agents) know(agent)
    this.#ledger = ledger
    this.#host = host
    this.#know = know
    this.#priced = priced
    this.#newId = runIdMaker(host)
    const drained = (): boolean => this.#draining
    const parents: ParentOptions = {
      ...{ ledger, host, know, named, drained, awaited: new Set() },
      hubs: () => this.hubs,
    }
    this.hubs = new HubRegistry({
      ...{ ledger, host, onDrift, newKey: this.#newId, agentNamed: named, drained },
      children: childRuns(parents),
      worksFor: (runId, root) => worksFor(ledger, runId, root),
      onEnd: (state) => tellParent(state, parents),
    })
  }

  start<Output>(agent: Agent<Output>, input: string | readonly UserPart[], options: RunOptions): RunHub {
    this.requireOpen()
    const { limits, whenBusy, subject } = options
    const hub = this.hubs.hubOf(this.#newId())
    const own = { ...present({ limits }), know: this.#know }
    const command = startCommand(hub.runId, this.#know(agent), input, own)
    const prepare = async (): Promise<StartCommand> => ({
      ...command,
      ...(await pastOf(this.#ledger, options)),
      ...present({ subject }),
    })
    hub.start(prepare, whenBusy === 'queue')
    return hub
  }

  fork(source: string, options: ForkOptions): RunHub {
    this.requireOpen()
    const runId = this.#newId()
    const hub = this.hubs.hubOf(runId, options.agent && this.#priced(options.agent))
    hub.fork(() => forkOf(this.#ledger, { source, runId }, options))
    return hub
  }

  found(text: string): RunHub {
    this.requireOpen()
    const runId = parseRunId(text)
    if (runId === undefined) throw new RunNotFoundError(text)
    return this.hubs.hubOf(runId)
  }

  handle<Output>(hub: RunHub): Run<Output> {
    return runOf<Output>(hub, {
      ...{ runId: hub.runId, ledger: this.#ledger, live: hub.live, report: this.#host.report },
      hold: () => this.hubs.hold(hub),
    })
  }

  async drain(graceMs: number): Promise<readonly RunResult[]> {
    this.#draining = true
    const rests = await Promise.allSettled(this.hubs.driving.map((hub) => hub.drain(graceMs)))
    return rests.flatMap((rest) => (rest.status === 'fulfilled' ? [rest.value] : []))
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
    async run<Output>(
      agent: Agent<Output>,
      input: string | readonly UserPart[],
      { whenBusy = 'conflict', ...options }: SessionRunOptions = {},
    ) {
      runs.requireOpen()
      const joined =
        whenBusy === 'join' ? await joinedRun(ledger, runs.hubs, id, messageOf(input)) : undefined
      const own = {
        ...options,
        sessionId: id,
        whenBusy: whenBusy === 'join' ? 'conflict' : whenBusy,
      } as const
      return runs.handle<Output>(joined ?? runs.start(agent, input, own))
    },
  }
}

async function* suspendedRuns(ledger: Ledger): AsyncGenerator<RunResult, void, undefined> {
  for await (const { runId } of ledger.runs()) {
    const state = await stateOf(ledger, runId)
    if (state && isSuspended(state) && state.parent?.relation !== 'child')
      yield await withChildren(state, ledger)
  }
}
