import { ConfigurationError, RunNotFoundError } from '../errors.ts'
import type { Host } from '../ports/clock.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { StartCommand } from '../vocabulary/command.ts'
import type { ModelRef, UserMessage, UserPart } from '../vocabulary/content.ts'
import { parseRunId, type RunId } from '../vocabulary/ids.ts'
import { defaultRetryPolicy, type Limits } from '../vocabulary/limits.ts'
import type { Price } from '../vocabulary/price.ts'
import { requireLimits, type Agent } from './agent.ts'
import { defaultHost } from './host.ts'
import { RunHub } from './run-hub.ts'
import { runIdMaker } from './run-ids.ts'
import { runOf, type Run } from './run.ts'

/** What a runtime is put together from. */
export interface RuntimeOptions {
  readonly ledger: Ledger
  /** The agents that a resume can find by the name in the ledger. Those that `run` is given are known as well. */
  readonly agents?: readonly Agent[]
  /** What models cost: by model id, or as a function. Without a price a run has no cost, and no `costMaxUsd`. */
  readonly prices?: Prices
  /** Time, timers, randomness, and where stray errors are reported; the host's own where not given. */
  readonly host?: Partial<Host>
}

/** Says what a model costs; `undefined` where it does not know. */
export type Prices = { readonly [modelId: string]: Price } | ((model: ModelRef) => Price | undefined)

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
}

/** Puts a runtime together. */
export function createRuntime(options: RuntimeOptions): Runtime {
  const { ledger, agents = [], prices = {}, host: given = {} } = options
  if (typeof ledger?.append !== 'function') {
    throw new ConfigurationError(
      'createRuntime needs a ledger, such as memoryLedger() or sqliteLedger(path).',
    )
  }
  const host: Host = { ...defaultHost, ...given }
  const newId = runIdMaker(host)
  const known = new Map<string, Agent>()
  const hubs = new Map<RunId, WeakRef<RunHub>>()
  const forget = new FinalizationRegistry<RunId>((runId) => {
    if (hubs.get(runId)?.deref() === undefined) hubs.delete(runId)
  })

  const know = (agent: Agent): Agent => {
    const other = known.get(agent.name)
    if (other && other.definition.digest !== agent.definition.digest) {
      throw new ConfigurationError(
        `Two different agents are named ${agent.name}; a resume could not tell which one a run belongs to. Rename one.`,
      )
    }
    const price = typeof prices === 'function' ? prices(agent.definition.model) : prices[agent.model.modelId]
    const priced = price ? { ...agent, definition: { ...agent.definition, price } } : agent
    known.set(agent.name, priced)
    return priced
  }
  agents.forEach(know)

  const hubOf = (runId: RunId): RunHub => {
    const there = hubs.get(runId)?.deref()
    if (there) return there
    const hub = new RunHub({
      ...{ runId, ledger, host, newKey: newId },
      agentNamed: (name) => known.get(name),
      onFailure: () => hubs.delete(runId),
    })
    hubs.set(runId, new WeakRef(hub))
    forget.register(hub, runId)
    return hub
  }
  const handle = (hub: RunHub): Run =>
    runOf(hub, { runId: hub.runId, ledger, live: hub.live, report: host.report })

  return {
    run(agent, input, options = {}) {
      const hub = hubOf(newId())
      hub.start(startCommand(hub.runId, know(agent), input, options))
      return handle(hub)
    },
    resume(text) {
      const runId = parseRunId(text)
      if (runId === undefined) throw new RunNotFoundError(text)
      const hub = hubOf(runId)
      void hub.resume()
      return handle(hub)
    },
  }
}

function startCommand(
  runId: RunId,
  agent: Agent,
  input: string | readonly UserPart[],
  options: RunOptions,
): StartCommand {
  const limits = { ...agent.limits, ...options.limits }
  requireLimits(agent.name, limits)
  if (limits.costMaxUsd !== undefined && agent.definition.price === undefined) {
    throw new ConfigurationError(
      `The run is limited to ${limits.costMaxUsd} US dollars, but nobody knows what ${agent.model.modelId} costs, so the limit could not hold. Give createRuntime a price for it in prices.`,
    )
  }
  return {
    ...{ type: 'start', runId, agent: agent.name, definition: agent.definition, limits },
    retry: { ...defaultRetryPolicy, ...agent.retry },
    input: messageOf(input),
    ...(options.sessionId !== undefined && { sessionId: options.sessionId }),
  }
}

function messageOf(input: string | readonly UserPart[]): UserMessage {
  if (typeof input === 'string') {
    if (input !== '') return { role: 'user', parts: [{ type: 'text', text: input }] }
  } else if (Array.isArray(input) && input.length > 0) {
    return { role: 'user', parts: input }
  }
  throw new ConfigurationError(
    'A run needs an input: a text, or message parts; providers refuse an empty message.',
  )
}
