import { ConfigurationError, RunNotFoundError } from '../errors.ts'
import { isSuspended } from '../machine/effects-of.ts'
import type { Host } from '../ports/clock.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { OutsideCommand, StartCommand } from '../vocabulary/command.ts'
import type { ResultPart, UserMessage, UserPart } from '../vocabulary/content.ts'
import { parseRunId } from '../vocabulary/ids.ts'
import type { Limits } from '../vocabulary/limits.ts'
import { present } from '../vocabulary/present.ts'
import type { Agent } from './agent.ts'
import { defaultHost } from './host.ts'
import { messageOf } from './input-message.ts'
import type { CommandReceipt } from './receipts.ts'
import { knownAgents, type Prices } from './known-agents.ts'
import { HubRegistry } from './hub-registry.ts'
import type { RunHub } from './run-hub.ts'
import { runIdMaker } from './run-ids.ts'
import { stateOf } from './load-state.ts'
import { childRuns, tellParent, worksFor, type ParentOptions } from './parent-runs.ts'
import { withChildren, type RunResult } from './run-result.ts'
import { lastOf, pastOf, sessionView, type PastOptions, type Session } from './session.ts'
import { startCommand } from './start-command.ts'
import { runOf, type Run } from './run.ts'

/** What a runtime is put together from. */
export interface RuntimeOptions {
  readonly ledger: Ledger
  /** The agents that a resume can find by the name in the ledger. Those that `run` is given are known as well. */
  readonly agents?: readonly Agent<unknown>[]
  /** What models cost: by model id, or as a function. Without a price a run has no cost, and no `costMaxUsd`. */
  readonly prices?: Prices
  /**
   * What a resume does when the agent's code says something else than what the run recorded: `continue` with what it
   * says now, which is put on record (the default), or `refuse`.
   */
  readonly onDrift?: 'continue' | 'refuse'
  /** Time, timers, randomness, and where stray errors are reported; the host's own where not given. */
  readonly host?: Partial<Host>
}

/** What one run may have of its own. */
export interface RunOptions extends PastOptions {
  /** Limits of this run, over those of the agent. */
  readonly limits?: Limits
}

/** What one run of a session may have of its own. */
export interface SessionRunOptions extends Omit<RunOptions, 'sessionId' | 'whenBusy'> {
  /**
   * As for `Runtime.run`; and `join`: the input goes into the run that is under way, at its next turn, and that run is
   * the answer. A run whose process is gone is not taken over by joining it: `resume` does that.
   */
  readonly whenBusy?: 'conflict' | 'queue' | 'join'
}

/** A conversation in the hands of a runtime. */
export interface RuntimeSession extends Session {
  /** Starts its next run, or joins the one that is under way. Rejects as the result of a run does. */
  run<Output>(
    agent: Agent<Output>,
    input: string | readonly UserPart[],
    options?: SessionRunOptions,
  ): Promise<Run<Output>>
}

/** Starts runs and takes them up again. */
export interface Runtime {
  /**
   * Starts a run. It is under way when this returns. In a session it begins with what was said there; where another
   * process begins a run of the session at the same moment, one of the two gets a `LedgerConflictError`, or waits.
   */
  run<Output>(agent: Agent<Output>, input: string | readonly UserPart[], options?: RunOptions): Run<Output>
  /** A conversation: its runs, its history, its next run. It need not have begun. */
  session(sessionId: string): RuntimeSession
  /**
   * Takes a run up where its ledger ends: after a suspension, a crash, or from another process. A run that this
   * runtime is driving is joined, not driven twice. The result rejects with `RunNotFoundError` for an unknown run,
   * and with `ConfigurationError` when its agent is not known.
   */
  resume<Output = unknown>(runId: string): Run<Output>
  /**
   * Settles a tool call that was deferred: its result is a text, parts, or what went wrong. The run goes on in this
   * process. A call that does not wait to be settled is a refusal, not an error; a second settling changes nothing.
   */
  settle(runId: string, toolCallId: string, result: SettledResult): Promise<CommandReceipt>
  /**
   * The runs of the ledger that only a command can take further, and what they wait for. Child runs are not listed by
   * themselves: what they wait for, the run at the top waits for.
   */
  suspended(): AsyncGenerator<RunResult, void, undefined>
  /**
   * For a stop signal. Starts nothing more, lets what is in flight end for `graceMs` (5 seconds), stops the rest, and
   * answers where each run rests. `resume` takes them further, in any process; this runtime starts no more runs, and
   * refuses commands. A run whose writer fails meanwhile is not among the answers: its handle says why.
   */
  drain(graceMs?: number): Promise<readonly RunResult[]>
}

/** Puts a runtime together. */
export function createRuntime(options: RuntimeOptions): Runtime {
  const { ledger, agents = [], prices = {}, onDrift = 'continue', host: given = {} } = options
  if (typeof ledger?.append !== 'function') {
    throw new ConfigurationError(
      'createRuntime needs a ledger, such as memoryLedger() or sqliteLedger(path).',
    )
  }
  const host: Host = { ...defaultHost, ...given }
  const newId = runIdMaker(host)
  let draining = false
  const requireOpen = (): void => {
    if (draining)
      throw new ConfigurationError('This runtime has been drained and starts no more runs; create another.')
  }
  const { know, named } = knownAgents(prices)
  for (const agent of agents) know(agent)

  const parents: ParentOptions = {
    ...{ ledger, host, know, named },
    hubs: () => hubs,
    drained: () => draining,
  }
  const hubs: HubRegistry = new HubRegistry({
    ...{ ledger, host, onDrift, newKey: newId, agentNamed: named },
    drained: () => draining,
    children: childRuns(parents),
    worksFor: (runId, root) => worksFor(ledger, runId, root),
    onEnd: (state) => tellParent(state, parents),
  })
  const handle = <Output>(hub: RunHub): Run<Output> =>
    runOf<Output>(hub, {
      ...{ runId: hub.runId, ledger, live: hub.live, report: host.report },
      hold: () => hubs.hold(hub),
    })
  const start = <Output>(
    agent: Agent<Output>,
    input: string | readonly UserPart[],
    options: RunOptions,
  ): RunHub => {
    const hub = hubs.hubOf(newId())
    const command = startCommand(hub.runId, know(agent), input, {
      ...present({ limits: options.limits }),
      know,
    })
    const prepare = async (): Promise<StartCommand> => ({ ...command, ...(await pastOf(ledger, options)) })
    hub.start(prepare, options.whenBusy === 'queue')
    return hub
  }
  const found = (text: string): RunHub => {
    const runId = parseRunId(text)
    if (runId === undefined) throw new RunNotFoundError(text)
    return hubs.hubOf(runId)
  }

  return {
    run(agent, input, options = {}) {
      requireOpen()
      return handle(start(agent, input, options))
    },
    session(id) {
      requireSessionId(id)
      return {
        ...sessionView(ledger, id),
        async run<Output>(
          agent: Agent<Output>,
          input: string | readonly UserPart[],
          { whenBusy = 'conflict', ...options }: SessionRunOptions = {},
        ) {
          requireOpen()
          const joined = whenBusy === 'join' ? await joinedRun(ledger, hubs, id, messageOf(input)) : undefined
          const own = {
            ...options,
            sessionId: id,
            whenBusy: whenBusy === 'join' ? 'conflict' : whenBusy,
          } as const
          return handle<Output>(joined ?? start(agent, input, own))
        },
      }
    },
    resume<Output>(text: string) {
      requireOpen()
      const hub = found(text)
      void hub.resume()
      return handle<Output>(hub)
    },
    settle(text, toolCallId, result) {
      requireOpen()
      return found(text).send({ type: 'settle', toolCallId, ...settledResult(result) })
    },
    suspended: () => suspendedRuns(ledger),
    async drain(graceMs = 5_000) {
      draining = true
      const rests = await Promise.allSettled(hubs.driving.map((hub) => hub.drain(graceMs)))
      return rests.flatMap((rest) => (rest.status === 'fulfilled' ? [rest.value] : []))
    },
  }
}

function requireSessionId(id: string): void {
  if (typeof id === 'string' && id !== '' && id.isWellFormed() && !id.includes('\0')) return
  throw new ConfigurationError('A session needs a name: a text that is not empty, such as a conversation id.')
}

/** Gives input to the run of a session that is under way; `undefined` where none is. */
async function joinedRun(
  ledger: Ledger,
  hubs: HubRegistry,
  sessionId: string,
  message: UserMessage,
): Promise<RunHub | undefined> {
  const last = await lastOf(ledger, sessionId)
  const state = last && (await stateOf(ledger, last.runId))
  if (state === undefined || state.phase === 'done') return undefined
  const hub = hubs.hubOf(state.runId)
  const receipt = hub.newReceipt()
  const command = { type: 'steer', message, receipt } as const
  if (hub.driving || isSuspended(state)) {
    // Who is told that the run has ended meanwhile starts the next one.
    return (await hub.send(command)).accepted ? hub : undefined
  }
  await hub.leave(command)
  hub.follow(state)
  return hub
}

/** How a deferred call ended: a text or parts for a success, or what went wrong. */
export type SettledResult = string | readonly ResultPart[] | { readonly failed: string }

function settledResult(
  result: SettledResult,
): Pick<Extract<OutsideCommand, { type: 'settle' }>, 'outcome' | 'content'> {
  if (typeof result === 'string') return { outcome: 'success', content: [{ type: 'text', text: result }] }
  if ('failed' in result) return { outcome: 'failed', content: [{ type: 'text', text: result.failed }] }
  return { outcome: 'success', content: result }
}

async function* suspendedRuns(ledger: Ledger): AsyncGenerator<RunResult, void, undefined> {
  for await (const { runId } of ledger.runs()) {
    const state = await stateOf(ledger, runId)
    if (state && isSuspended(state) && state.parent?.relation !== 'child')
      yield await withChildren(state, ledger)
  }
}
