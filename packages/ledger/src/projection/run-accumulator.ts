import type { RunId, RuntimeEvent, Usage } from '@tallystick/core'
import {
  addUsage,
  type EventOf,
  type EventType,
  type ModelRef,
  type Outcome,
} from '@tallystick/core/vocabulary'

/** How often the calls of one tool ended in one way. */
export interface CallCount {
  readonly name: string
  readonly outcome: Outcome
  readonly count: number
}

/** Models name tools as they like: beyond so many lines, calls are counted under the name `…`. */
const maxLines = 100

/** So many of the last ended calls are kept in order. */
const maxLastCalls = 40

/** The counts with one more result, and the last calls with it. */
function countCall(
  { calls, lastCalls }: Pick<AccumulatedRun, 'calls' | 'lastCalls'>,
  event: EventOf<'tool_result'>,
): Pick<AccumulatedRun, 'calls' | 'lastCalls'> {
  const { outcome } = event
  const isKnown = calls.some(({ name }) => name === event.name)
  const name = isKnown || calls.length < maxLines ? event.name : '…'
  const found = calls.findIndex((line) => line.name === name && line.outcome === outcome)
  const place = found === -1 ? calls.length : found
  const line = calls[place] ?? { name, outcome, count: 0 }
  return {
    calls: calls.toSpliced(place, 1, { ...line, count: line.count + 1 }),
    lastCalls: [...lastCalls, place].slice(-maxLastCalls),
  }
}

export const hourMs: number = 60 * 60 * 1000

/** Count, usage and cost of model calls. */
export interface Spent {
  readonly calls: number
  readonly usage: Usage
  /** Billionths of a US dollar for the calls that had a price: whole numbers, so that their order does not matter. */
  readonly costNano: number
  /** Calls that had no price. */
  readonly unpriced: number
}

/** Model calls of one agent and model that began within one hour. */
export interface SpendingLine extends Spent {
  /** Hours since 1970 UTC. */
  readonly hour: number
  /** The agent that had the conversation. */
  readonly agent: string
  readonly model: ModelRef
}

export function toHour(at: number): number {
  return Math.floor(at / hourMs)
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
  /** The last forty calls that have ended, in the order of their ends: each as its place in `calls`. */
  readonly lastCalls: readonly number[]
  /** Attempts of model calls that failed. */
  readonly failedAttempts: number
  /** The last event that a fork shares with the other run, which made the model calls up to there. */
  readonly sharedSeq: number
  readonly summaries: number
  readonly open: readonly OpenCall[]
  readonly settled: readonly SpendingLine[]
  readonly feedback?: FeedbackSummary
}

/** The feedback of a run in numbers. Who gave it is content, so no summary has the names. */
export interface FeedbackSummary {
  readonly count: number
  /** The lowest and the highest score, if any has one. */
  readonly lowest?: number
  readonly highest?: number
}

function countFeedback(
  { count, lowest, highest }: FeedbackSummary = { count: 0 },
  { score }: EventOf<'feedback_given'>,
): FeedbackSummary {
  const scores = [lowest, highest, score].filter((each) => each !== undefined)
  const range = scores.length > 0 && { lowest: Math.min(...scores), highest: Math.max(...scores) }
  return { count: count + 1, ...range }
}

const nothingAccumulated: AccumulatedRun = {
  agents: [],
  childRunIds: [],
  calls: [],
  lastCalls: [],
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
  schedule_set: null,
  schedule_fired: null,
  history_carried: null,
  session_edited: null,
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
  approval_added: null,
  approval_applied: null,
  approval_withdrawn: null,
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
  tool_result: (run, event) => ({ ...run, ...countCall(run, event) }),
  background_ended: null,
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
  feedback_given: (run, event) => ({ ...run, feedback: countFeedback(run.feedback, event) }),
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

/** Accumulates the events of a run, in order. Its child runs are not counted. */
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

/** A run's spending, the calls under way included; one line for each hour, agent and model. */
export function listSpending({ settled, open }: AccumulatedRun): readonly SpendingLine[] {
  return open.map(toLine).reduce(addLine, settled)
}

const usdNano = 1e9

export function toCostNano(costUsd: number | undefined): number {
  return Math.round((costUsd ?? 0) * usdNano)
}

/** US dollars of the priced ones among `count`; `undefined` if none had a price. */
export function toCostUsd(costNano: number, unpriced: number, count: number): number | undefined {
  return unpriced < count ? costNano / usdNano : undefined
}

function toLine({ agent, model, at, usage = {}, costUsd }: OpenCall): SpendingLine {
  const unpriced = costUsd === undefined ? 1 : 0
  return { hour: toHour(at), agent, model, calls: 1, usage, costNano: toCostNano(costUsd), unpriced }
}

/** The lines with one more, added to the line of the same hour, agent and model if there is one. */
function addLine(lines: readonly SpendingLine[], line: SpendingLine): readonly SpendingLine[] {
  const place = lines.findLastIndex(
    ({ hour, agent, model: { provider, api, modelId } }) =>
      hour === line.hour &&
      agent === line.agent &&
      provider === line.model.provider &&
      api === line.model.api &&
      modelId === line.model.modelId,
  )
  const before = lines[place]
  return before ? lines.with(place, { ...before, ...addSpending(before, line) }) : [...lines, line]
}

/** The numbers of two lines, added up. */
export function addSpending(a: Spent, b: Spent): Spent {
  return {
    calls: a.calls + b.calls,
    usage: addUsage(a.usage, b.usage),
    costNano: a.costNano + b.costNano,
    unpriced: a.unpriced + b.unpriced,
  }
}
