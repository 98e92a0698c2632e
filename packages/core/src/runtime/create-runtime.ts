import { ConfigurationError, RunNotFoundError } from '../errors.ts'
import { isSuspended } from '../machine/effects-of.ts'
import { evolve } from '../machine/evolve.ts'
import type { RunState } from '../machine/state.ts'
import type { Host } from '../ports/clock.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { AgentDefinition } from '../vocabulary/agent-definition.ts'
import type { OutsideCommand, StartCommand } from '../vocabulary/command.ts'
import type { ResultPart, UserPart } from '../vocabulary/content.ts'
import { parseRunId, type RunId } from '../vocabulary/ids.ts'
import { defaultRetryPolicy, type Limits } from '../vocabulary/limits.ts'
import type { Agent } from './agent.ts'
import { requireLimits } from './agent-check.ts'
import { defaultHost } from './host.ts'
import { messageOf } from './input-message.ts'
import type { CommandReceipt } from './receipts.ts'
import { knownAgents, type Prices } from './known-agents.ts'
import { HubRegistry } from './hub-registry.ts'
import type { RunHub } from './run-hub.ts'
import { runIdMaker } from './run-ids.ts'
import { resultOf, type RunResult } from './run-result.ts'
import { runOf, type Run } from './run.ts'

/** What a runtime is put together from. */
export interface RuntimeOptions {
  readonly ledger: Ledger
  /** The agents that a resume can find by the name in the ledger. Those that `run` is given are known as well. */
  readonly agents?: readonly Agent[]
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
export interface RunOptions {
  /** The conversation that the run belongs to. */
  readonly sessionId?: string
  /** Limits of this run, over those of the agent. */
  readonly limits?: Limits
}

/** Starts runs and takes them up again. */
export interface Runtime {
  /** Starts a run. It is under way when this returns. */
  run(agent: Agent, input: string | readonly UserPart[], options?: RunOptions): Run
  /**
   * Takes a run up where its ledger ends: after a suspension, a crash, or from another process. A run that this
   * runtime is driving is joined, not driven twice. The result rejects with `RunNotFoundError` for an unknown run,
   * and with `ConfigurationError` when its agent is not known.
   */
  resume(runId: string): Run
  /**
   * Settles a tool call that was deferred: its result is a text, parts, or what went wrong. The run goes on in this
   * process. A call that does not wait to be settled is a refusal, not an error; a second settling changes nothing.
   */
  settle(runId: string, toolCallId: string, result: SettledResult): Promise<CommandReceipt>
  /** The runs of the ledger that only a command can take further, and what they wait for. */
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
  agents.forEach(know)

  const hubs = new HubRegistry({
    ...{ ledger, host, onDrift, newKey: newId, agentNamed: named },
    drained: () => draining,
  })
  const handle = (hub: RunHub): Run =>
    runOf(hub, {
      ...{ runId: hub.runId, ledger, live: hub.live, report: host.report },
      hold: () => hubs.hold(hub),
    })

  return {
    run(agent, input, options = {}) {
      requireOpen()
      const hub = hubs.hubOf(newId())
      hub.start(startCommand(hub.runId, know(agent), input, options))
      return handle(hub)
    },
    resume(text) {
      requireOpen()
      const runId = parseRunId(text)
      if (runId === undefined) throw new RunNotFoundError(text)
      const hub = hubs.hubOf(runId)
      void hub.resume()
      return handle(hub)
    },
    settle(text, toolCallId, result) {
      requireOpen()
      const runId = parseRunId(text)
      if (runId === undefined) throw new RunNotFoundError(text)
      return hubs.hubOf(runId).send({ type: 'settle', toolCallId, ...settledResult(result) })
    },
    suspended: () => suspendedRuns(ledger),
    async drain(graceMs = 5_000) {
      draining = true
      const rests = await Promise.allSettled(hubs.driving.map((hub) => hub.drain(graceMs)))
      return rests.flatMap((rest) => (rest.status === 'fulfilled' ? [rest.value] : []))
    },
  }
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
    let state: RunState | undefined
    for await (const event of ledger.read(runId)) state = evolve(state, event)
    if (state && isSuspended(state)) yield resultOf(state)
  }
}

/** Law 9 for money: a budget that nobody could hold is refused before anything is spent. */
function requirePrices(definition: AgentDefinition, costMaxUsd: number): void {
  const models = [definition, ...(definition.fallbacks ?? [])]
  const unknown = models.find(({ price }) => price === undefined)
  if (unknown === undefined) return
  throw new ConfigurationError(
    `The run is limited to ${costMaxUsd} US dollars, but nobody knows what ${unknown.model.modelId} costs, so the limit could not hold. Give createRuntime a price for it in prices.`,
  )
}

function startCommand(
  runId: RunId,
  agent: Agent,
  input: string | readonly UserPart[],
  options: RunOptions,
): StartCommand {
  const limits = { ...agent.limits, ...options.limits }
  requireLimits(agent.name, limits)
  if (limits.costMaxUsd !== undefined) requirePrices(agent.definition, limits.costMaxUsd)
  return {
    ...{ type: 'start', runId, agent: agent.name, definition: agent.definition, limits },
    retry: { ...defaultRetryPolicy, ...agent.retry },
    input: messageOf(input),
    ...(options.sessionId !== undefined && { sessionId: options.sessionId }),
  }
}
