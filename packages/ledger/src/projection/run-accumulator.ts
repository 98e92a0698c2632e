import type { RunId, RuntimeEvent, Usage } from '@tallystick/core'
import { usageFields } from '@tallystick/core/internal'
import type { EventType, ModelRef, Outcome } from '@tallystick/core/vocabulary'

/** How often the calls of one tool ended in one way. */
export interface CallCount {
  readonly name: string
  readonly outcome: Outcome
  readonly count: number
}

/** Models name tools as they like: beyond so many lines, calls are counted under the name `…`. */
const maxLines = 100

/** The counts with one more result; the same ones for any other event. */
export function countedCalls(counts: readonly CallCount[], event: RuntimeEvent): readonly CallCount[] {
  if (event.type !== 'tool_result') return counts
  const { outcome } = event
  const isKnown = counts.some(({ name }) => name === event.name)
  const name = isKnown || counts.length < maxLines ? event.name : '…'
  const place = counts.findIndex((line) => line.name === name && line.outcome === outcome)
  const line = counts[place]
  if (line === undefined) return [...counts, { name, outcome, count: 1 }]
  return counts.with(place, { ...line, count: line.count + 1 })
}

/** The sums that totals keep, under the names of their columns; whole numbers, so that their order does not matter. */
export const amountColumns = [
  'unpriced',
  'cost_nano',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'cache_write_long_tokens',
  'reasoning_tokens',
  'web_searches',
  'input_told',
  'output_told',
  'cache_read_told',
  'cache_write_told',
  'cache_write_long_told',
  'reasoning_told',
  'web_searches_told',
] as const
type AmountColumn = (typeof amountColumns)[number]

/**
 * What was used and what it cost, of one thing or of many. `cost_nano` is billionths of a US dollar; `unpriced` how many
 * had no price, and `…_told` of how many the provider said so many tokens of a kind.
 */
export type Amounts = { readonly [Column in AmountColumn]: number }

const usdNano = 1e9

const columnsOf = {
  inputTokens: ['input_tokens', 'input_told'],
  outputTokens: ['output_tokens', 'output_told'],
  cacheReadTokens: ['cache_read_tokens', 'cache_read_told'],
  cacheWriteTokens: ['cache_write_tokens', 'cache_write_told'],
  cacheWriteLongTokens: ['cache_write_long_tokens', 'cache_write_long_told'],
  reasoningTokens: ['reasoning_tokens', 'reasoning_told'],
  webSearches: ['web_searches', 'web_searches_told'],
} as const satisfies { readonly [Field in keyof Usage]-?: readonly [AmountColumn, AmountColumn] }

/** Nothing at all. */
export const noAmounts: Amounts = Object.fromEntries(
  amountColumns.map((column) => [column, 0]),
) as unknown as Amounts

/** The amounts of one thing. */
export function amountsOf(usage: Usage, costUsd: number | undefined): Amounts {
  const amounts: { -readonly [Column in AmountColumn]: number } = { ...noAmounts }
  if (costUsd === undefined) amounts.unpriced = 1
  else amounts.cost_nano = Math.round(costUsd * usdNano)
  for (const field of usageFields) {
    const count = usage[field]
    if (count === undefined) continue
    const [tokens, reported] = columnsOf[field]
    amounts[tokens] = count
    amounts[reported] = 1
  }
  return amounts
}

/** Amounts with others on top of them, or with those taken off (`sign` -1). */
export function addAmounts(to: Amounts, more: Amounts, sign: 1 | -1 = 1): Amounts {
  const sum: { -readonly [Column in AmountColumn]: number } = { ...noAmounts }
  for (const column of amountColumns) sum[column] = to[column] + sign * more[column]
  return sum
}

/** Returns the tokens of amounts. An unreported kind is unknown, not 0. */
export function usageOf(amounts: Amounts): Usage {
  const usage: { -readonly [Field in keyof Usage]: number } = {}
  for (const field of usageFields) {
    const [tokens, reported] = columnsOf[field]
    if (amounts[reported] > 0) usage[field] = amounts[tokens]
  }
  return usage
}

/** US dollars of what had a price among `count` things; `undefined` where none had. */
export function costUsdOf(amounts: Amounts, count: number): number | undefined {
  return amounts.unpriced < count ? amounts.cost_nano / usdNano : undefined
}

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
  ...(['tool_progress', 'run_finished'] as const),
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
    if (event.type === 'tool_progress' && event.spent !== undefined) {
      const key = `tool ${event.seq}`
      this.#begin(key, { ...event, model: event.spent.model })
      this.#take(key, event.spent)
      this.#settle((call) => call.key === key)
    }
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

/**
 * A name as the key of a row: most are used unchanged, and one that a database could not hold, or that looks like the
 * other kind, as JSON. No two names have the same key.
 */
export function storableKey(name: string): string {
  const isPlain = name.isWellFormed() && !name.includes('\0') && !name.startsWith('"')
  return isPlain ? name : JSON.stringify(name)
}

/** The name that a key stands for. */
export function nameOfKey(key: string): string {
  return key.startsWith('"') ? (JSON.parse(key) as string) : key
}
