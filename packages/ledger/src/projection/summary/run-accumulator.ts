import type { RunId, RuntimeEvent, Usage } from '@tallystick/core'
import type { EventType, ModelRef } from '@tallystick/core/vocabulary'
import { countedCalls, type CallCount } from './call-counts.ts'
import { addAmounts, amountsOf, type Amounts } from '../tables/amounts.ts'

const hourMs = 60 * 60 * 1000

/** Model calls of one agent and model that began within one hour, summed up. */
export interface SpendingLine {
  /** Hours since 1970 UTC. */
  readonly hour: number
  /** The agent that had the conversation. */
  readonly agent: string
  readonly model: ModelRef
  readonly calls: number
  readonly amounts: Amounts
}

/** The hour that a moment is in. */
export function hourOf(at: number): number {
  return Math.floor(at / hourMs)
}

/** The moment that an hour begins at, in milliseconds since 1970 UTC. */
export function beginningOf(hour: number): number {
  return hour * hourMs
}

/** A model call whose numbers may still be replaced. */
interface OpenCall {
  readonly key: string
  readonly turn: number
  readonly agent: string
  readonly model: ModelRef
  readonly at: number
  readonly usage?: Usage
  readonly costUsd?: number
}

/** What has to be known of a run's events beside its state, to tell what it took and who took part. */
export interface AccumulatedRun {
  readonly agents: readonly string[]
  readonly childRunIds: readonly RunId[]
  /** How its tool calls ended. */
  readonly calls: readonly CallCount[]
  /** Attempts of model calls that failed. */
  readonly failedAttempts: number
  /** The last event that a fork shares with the other run, which made the model calls up to there. */
  readonly sharedSeq: number
  readonly summaries: number
  readonly open: readonly OpenCall[]
  readonly settled: readonly SpendingLine[]
}

const nothingAccumulated: AccumulatedRun = {
  agents: [],
  childRunIds: [],
  calls: [],
  failedAttempts: 0,
  sharedSeq: 0,
  summaries: 0,
  open: [],
  settled: [],
}

/** The types of events that anything is accumulated of. */
const accumulatedTypes: ReadonlySet<string> = new Set<EventType>([
  ...(['run_started', 'agent_handed_off', 'tool_started', 'tool_result', 'model_stream_failed'] as const),
  ...(['model_call_started', 'usage_updated', 'compaction_started', 'context_compacted'] as const),
  'run_finished',
])

/**
 * Accumulates what a run's events say, in order. What its child runs took is theirs, and what a fork shares with the
 * other run was taken by that one.
 */
export class RunAccumulator {
  #run: AccumulatedRun

  constructor(accumulated: AccumulatedRun = nothingAccumulated) {
    this.#run = accumulated
  }

  get run(): AccumulatedRun {
    return this.#run
  }

  add(event: RuntimeEvent): void {
    if (!accumulatedTypes.has(event.type)) return
    this.#addAgents(event)
    this.#addEndings(event)
    if (event.seq > this.#run.sharedSeq) this.#addModelCall(event)
  }

  #addAgents(event: RuntimeEvent): void {
    const { agents, childRunIds: children } = this.#run
    if (event.type === 'run_started') {
      const sharedSeq = event.parent?.relation === 'fork' ? event.parent.seq : 0
      this.#run = { ...this.#run, agents: [event.agent], sharedSeq }
    }
    if (event.type === 'agent_handed_off') this.#run = { ...this.#run, agents: [...agents, event.to] }
    if (event.type === 'tool_started' && event.child !== undefined && !children.includes(event.child)) {
      this.#run = { ...this.#run, childRunIds: [...children, event.child] }
    }
  }

  #addEndings(event: RuntimeEvent): void {
    const calls = countedCalls(this.#run.calls, event)
    const failedAttempts = this.#run.failedAttempts + (event.type === 'model_stream_failed' ? 1 : 0)
    if (calls !== this.#run.calls || failedAttempts !== this.#run.failedAttempts) {
      this.#run = { ...this.#run, calls, failedAttempts }
    }
  }

  #addModelCall(event: RuntimeEvent): void {
    const { turn } = event
    if (event.type === 'model_call_started') {
      this.#settle((call) => call.turn !== turn)
      this.#begin(`${turn} ${event.attempt}`, event)
    }
    if (event.type === 'usage_updated') this.#take(`${turn} ${event.attempt}`, event)
    if (event.type === 'compaction_started') {
      this.#run = { ...this.#run, summaries: this.#run.summaries + 1 }
      this.#begin(`summary ${this.#run.summaries}`, event)
    }
    if (event.type === 'context_compacted') this.#take(`summary ${this.#run.summaries}`, event)
    if (event.type === 'run_finished') this.#settle(() => true)
  }

  #begin(key: string, { turn, at, model }: Pick<OpenCall, 'turn' | 'at' | 'model'>): void {
    const { open, agents } = this.#run
    const call = { key, turn, agent: agents.at(-1) ?? '', model, at }
    this.#run = { ...this.#run, open: [...open, call] }
  }

  /** Numbers are totals of the call, so a later report replaces an earlier one. */
  #take(key: string, { usage, costUsd }: { readonly usage?: Usage; readonly costUsd?: number }): void {
    if (usage === undefined) return
    const open = this.#run.open.map((call) =>
      call.key === key
        ? { ...call, usage: { ...call.usage, ...usage }, ...(costUsd !== undefined && { costUsd }) }
        : call,
    )
    this.#run = { ...this.#run, open }
  }

  /** The numbers of these calls are final. */
  #settle(isFinal: (call: OpenCall) => boolean): void {
    const { open, settled } = this.#run
    const final = open.filter(isFinal)
    if (final.length === 0) return
    this.#run = {
      ...this.#run,
      open: open.filter((call) => !isFinal(call)),
      settled: final.map(exportedLine).reduce(withLine, settled),
    }
  }
}

/** What a run spent, as far as its notes go. */
export function spendingOf({ settled, open }: AccumulatedRun): readonly SpendingLine[] {
  return mergeLines([...settled, ...open.map(exportedLine)])
}

function exportedLine({ agent, model, at, usage = {}, costUsd }: OpenCall): SpendingLine {
  return { hour: hourOf(at), agent, model, calls: 1, amounts: amountsOf(usage, costUsd) }
}

/** What tells one line from another. */
export function spendingKey({ hour, agent, model }: Pick<SpendingLine, 'hour' | 'agent' | 'model'>): string {
  return JSON.stringify([hour, agent, model.provider, model.api, model.modelId])
}

/** The lines with one more; the amounts of a line of the same hour, agent and model are added up in its place. */
function withLine(lines: readonly SpendingLine[], line: SpendingLine): readonly SpendingLine[] {
  const { hour, agent } = line
  const { provider, api, modelId } = line.model
  const place = lines.findLastIndex(
    (each) =>
      each.hour === hour &&
      each.agent === agent &&
      each.model.provider === provider &&
      each.model.api === api &&
      each.model.modelId === modelId,
  )
  const before = lines[place]
  return before ? lines.with(place, added(before, line)) : [...lines, line]
}

function added(before: SpendingLine, line: SpendingLine): SpendingLine {
  return { ...line, calls: before.calls + line.calls, amounts: addAmounts(before.amounts, line.amounts) }
}

function mergeLines(lines: readonly SpendingLine[]): readonly SpendingLine[] {
  const merged = new Map<string, SpendingLine>()
  for (const line of lines) {
    const key = spendingKey(line)
    const before = merged.get(key)
    merged.set(key, before ? added(before, line) : line)
  }
  return [...merged.values()]
}
