import type { RunId, RuntimeEvent, Usage } from '@tallystick/core'
import { usageFields } from '@tallystick/core/internal'
import { type EventOf, type EventType, type ModelRef, type Outcome } from '@tallystick/core/vocabulary'

/** How often the calls of one tool ended in one way. */
export interface CallCount {
  readonly name: string
  readonly outcome: Outcome
  readonly count: number
}

/** Models name tools as they like: beyond so many lines, calls are counted under the name `…`. */
const maxLines = 100

/** The counts with one more result. */
function countCall(counts: readonly CallCount[], event: EventOf<'tool_result'>): readonly CallCount[] {
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
 * Use and cost, of one thing or of many. `cost_nano` is billionths of a US dollar; `unpriced` how many
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
export function toAmounts(usage: Usage, costUsd: number | undefined): Amounts {
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
export function toUsage(amounts: Amounts): Usage {
  const usage: { -readonly [Field in keyof Usage]: number } = {}
  for (const field of usageFields) {
    const [tokens, reported] = columnsOf[field]
    if (amounts[reported] > 0) usage[field] = amounts[tokens]
  }
  return usage
}

/** US dollars of what had a price among `count` things; `undefined` where none had. */
export function toCostUsd(amounts: Amounts, count: number): number | undefined {
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
export function toHour(at: number): number {
  return Math.floor(at / hourMs)
}

/** The moment that an hour begins at, in milliseconds since 1970 UTC. */
export function startOfHour(hour: number): number {
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

/** The part of a run's events that its summary needs beside its state. */
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

type Step<T extends EventType> = (run: AccumulatedRun, event: EventOf<T>) => AccumulatedRun

/** The model calls that a fork shares with its source were made by the source. */
const steps: { readonly [T in EventType]: Step<T> | null } = {
  run_started: (run, { agent, parent }) => {
    return { ...run, agents: [agent], sharedSeq: parent?.relation === 'fork' ? parent.seq : 0 }
  },
  history_carried: null,
  history_edited: null,
  run_resumed: null,
  run_finished: ofItsOwn((run) => settle(run, () => true)),
  input_received: null,
  input_settled: null,
  model_call_started: ofItsOwn((run, event) => {
    const settled = settle(run, ({ turn }) => turn !== event.turn)
    return begin(settled, `${event.turn} ${event.attempt}`, event)
  }),
  assistant_started: null,
  assistant_text_delta: null,
  assistant_reasoning_delta: null,
  tool_input_delta: null,
  tool_request_ready: null,
  usage_updated: ofItsOwn((run, event) => use(run, `${event.turn} ${event.attempt}`, event)),
  assistant_message_finished: null,
  model_stream_failed: (run) => ({ ...run, failedAttempts: run.failedAttempts + 1 }),
  tool_requests_collected: null,
  approval_requested: null,
  approval_decided: null,
  tool_started: (run, { child }) => {
    const isNew = child !== undefined && !run.childRunIds.includes(child)
    return isNew ? { ...run, childRunIds: [...run.childRunIds, child] } : run
  },
  tool_progress: ofItsOwn((run, event) => {
    const { spent, seq } = event
    if (spent === undefined) return run
    const key = `tool ${seq}`
    const begun = begin(run, key, { ...event, model: spent.model })
    return settle(use(begun, key, spent), (call) => call.key === key)
  }),
  tool_deferred: null,
  tool_attempt_failed: null,
  tool_result: (run, event) => ({ ...run, calls: countCall(run.calls, event) }),
  tool_results_injected: null,
  compaction_started: ofItsOwn((run, event) => {
    const summaries = run.summaries + 1
    return begin({ ...run, summaries }, `summary ${summaries}`, event)
  }),
  context_compacted: ofItsOwn((run, event) => use(run, `summary ${run.summaries}`, event)),
  agent_handed_off: (run, { to }) => ({ ...run, agents: [...run.agents, to] }),
  guardrail_tripped: null,
  guardrails_checked: null,
  output_checked: null,
  limit_reached: null,
  limit_raised: null,
  cancel_requested: null,
}

function ofItsOwn<T extends EventType>(step: Step<T>): Step<T> {
  return (run, event) => (event.seq > run.sharedSeq ? step(run, event) : run)
}

function begin(
  run: AccumulatedRun,
  key: string,
  { turn, at, model }: Pick<OpenCall, 'turn' | 'at' | 'model'>,
): AccumulatedRun {
  return { ...run, open: [...run.open, { key, turn, agent: run.agents.at(-1) ?? '', model, at }] }
}

/** Numbers are totals of the call, so a later report replaces an earlier one. */
function use(
  run: AccumulatedRun,
  key: string,
  { usage, costUsd }: { readonly usage?: Usage; readonly costUsd?: number },
): AccumulatedRun {
  if (usage === undefined) return run
  const open = run.open.map((call) =>
    call.key === key
      ? { ...call, usage: { ...call.usage, ...usage }, ...(costUsd !== undefined && { costUsd }) }
      : call,
  )
  return { ...run, open }
}

/** The numbers of these calls are final. */
function settle(run: AccumulatedRun, isFinal: (call: OpenCall) => boolean): AccumulatedRun {
  const final = run.open.filter(isFinal)
  if (final.length === 0) return run
  const open = run.open.filter((call) => !isFinal(call))
  return { ...run, open, settled: final.map(toLine).reduce(addLine, run.settled) }
}

/** Accumulates what a run's events say, in order. What its child runs took is theirs. */
export class RunAccumulator {
  run: AccumulatedRun

  constructor(accumulated: AccumulatedRun = nothingAccumulated) {
    this.run = accumulated
  }

  add(event: RuntimeEvent): void {
    const step = steps[event.type] as Step<EventType> | null | undefined
    if (step) this.run = step(this.run, event)
  }
}

export function listSpending({ settled, open }: AccumulatedRun): readonly SpendingLine[] {
  return mergeLines([...settled, ...open.map(toLine)])
}

function toLine({ agent, model, at, usage = {}, costUsd }: OpenCall): SpendingLine {
  return { hour: toHour(at), agent, model, calls: 1, amounts: toAmounts(usage, costUsd) }
}

/** The identity of a line. */
export function formatSpendingKey({
  hour,
  agent,
  model,
}: Pick<SpendingLine, 'hour' | 'agent' | 'model'>): string {
  return JSON.stringify([hour, agent, model.provider, model.api, model.modelId])
}

/** The lines with one more; the amounts of a line of the same hour, agent and model are added up in its place. */
function addLine(lines: readonly SpendingLine[], line: SpendingLine): readonly SpendingLine[] {
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
    const key = formatSpendingKey(line)
    const before = merged.get(key)
    merged.set(key, before ? added(before, line) : line)
  }
  return [...merged.values()]
}

/**
 * A name as the key of a row: most are used unchanged, and one that a database could not hold, or that looks like the
 * other kind, as JSON. No two names have the same key.
 */
export function toKey(name: string): string {
  const isPlain = name.isWellFormed() && !name.includes('\0') && !name.startsWith('"')
  return isPlain ? name : JSON.stringify(name)
}

/** The name that a key stands for. */
export function fromKey(key: string): string {
  return key.startsWith('"') ? (JSON.parse(key) as string) : key
}
