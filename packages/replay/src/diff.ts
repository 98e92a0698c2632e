import {
  type Ledger,
  type RunId,
  RunNotFoundError,
  type RuntimeEvent,
  joinText,
  type Usage,
} from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/internal'
import { requireTextId } from '@tallystick/core/store-kit'
import {
  addUsage,
  type AgentDefinition,
  type EventOf,
  type EventType,
  type Json,
  extractRunId,
} from '@tallystick/core/vocabulary'

/** One place in which two values differ; `undefined` if one has nothing there. */
export interface Difference {
  /** Such as `content[0].text`; items with a name are identified by it: `definition.tools[pay].description`. */
  readonly path: string
  readonly recorded: unknown
  readonly happened: unknown
}

const foundDifferences = option.listOf(
  option.valueThat('a difference', (value) => typeof Object(value).path === 'string'),
)

/** Where two JSON values differ, by path, in the order of the first value's keys. Equal values give nothing. */
export function compareValues(recorded: unknown, happened: unknown, path = ''): readonly Difference[] {
  if (Object.is(recorded, happened)) return []
  if (
    !isContainer(recorded) ||
    !isContainer(happened) ||
    Array.isArray(recorded) !== Array.isArray(happened)
  ) {
    return [{ path: path || '(all)', recorded, happened }]
  }
  if (Array.isArray(recorded) && Array.isArray(happened)) return compareLists(recorded, happened, path)
  const keys = new Set([...Object.keys(recorded), ...Object.keys(happened)])
  return [...keys].flatMap((key) =>
    compareValues(recorded[key], happened[key], path === '' ? key : `${path}.${key}`),
  )
}

/**
 * Returns the differences to show to people: without digests, unless only digests differ, and of long texts only the
 * lines between the first and the last change. The path then names the first of these lines.
 */
export function selectDifferences(differences: readonly Difference[]): readonly Difference[] {
  requireOptions('selectDifferences', foundDifferences, differences, 'the list of differences')
  const reported = differences.filter(({ path }) => !/(^|\.)(d|\w+D)igest$/.test(path))
  return (reported.length > 0 ? reported : differences).map(withChangedLines)
}

function withChangedLines(difference: Difference): Difference {
  const { path, recorded, happened } = difference
  if (typeof recorded !== 'string' || typeof happened !== 'string') return difference
  const [before, after] = [recorded.split('\n'), happened.split('\n')]
  if (before.length === 1 && after.length === 1) return difference
  const start = countCommonLines(before, after)
  const rest = Math.min(before.length, after.length) - start
  const end = Math.min(rest, countCommonLines(before.toReversed(), after.toReversed()))
  const changed = (lines: readonly string[]): string | undefined => {
    const own = lines.slice(start, lines.length - end)
    return own.length === 0 ? undefined : own.join('\n')
  }
  return { path: `${path}, from line ${start + 1}`, recorded: changed(before), happened: changed(after) }
}

/** How many lines two texts begin with alike. */
function countCommonLines(a: readonly string[], b: readonly string[]): number {
  const changed = a.findIndex((line, index) => line !== b[index])
  return changed === -1 ? a.length : changed
}

/** Items that have names are compared by them: whatever comes in or goes away moves none of the others. */
function compareLists(
  recorded: readonly unknown[],
  happened: readonly unknown[],
  path: string,
): readonly Difference[] {
  const [before, after] = [indexByName(recorded), indexByName(happened)]
  if (before === undefined || after === undefined) {
    const length = Math.max(recorded.length, happened.length)
    return Array.from({ length }, (_, index) => index).flatMap((index) =>
      compareValues(recorded[index], happened[index], `${path}[${index}]`),
    )
  }
  const [namesBefore, namesAfter] = [[...before.keys()], [...after.keys()]]
  const found = [...new Set([...namesBefore, ...namesAfter])].flatMap((name) =>
    compareValues(before.get(name), after.get(name), `${path}[${name}]`),
  )
  const moved = found.length === 0 && namesBefore.join() !== namesAfter.join()
  return moved ? [{ path: `${path}, in order`, recorded: namesBefore, happened: namesAfter }] : found
}

/** Items by their names; `undefined` if not each has one of its own. */
function indexByName(items: readonly unknown[]): ReadonlyMap<string, unknown> | undefined {
  const named = new Map<string, unknown>()
  for (const item of items) {
    if (!isContainer(item) || typeof item['name'] !== 'string' || named.has(item['name'])) return undefined
    named.set(item['name'], item)
  }
  return named
}

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/**
 * How runs are compared by type of event: compared (`yes`), only listed (`noted`: how something went), or left out (`delta`: its
 * content is in the message).
 */
const compared: Readonly<Record<EventType, 'yes' | 'noted' | 'delta'>> = {
  run_started: 'yes',
  schedule_set: 'yes',
  schedule_fired: 'yes',
  history_carried: 'yes',
  session_edited: 'yes',
  history_edited: 'yes',
  run_resumed: 'yes',
  run_finished: 'yes',
  input_received: 'yes',
  input_settled: 'yes',
  model_call_started: 'yes',
  assistant_started: 'noted',
  assistant_text_delta: 'delta',
  assistant_reasoning_delta: 'delta',
  tool_input_delta: 'delta',
  tool_request_ready: 'yes',
  usage_updated: 'noted',
  assistant_message_finished: 'yes',
  model_stream_failed: 'yes',
  tool_requests_collected: 'yes',
  approval_requested: 'yes',
  approval_decided: 'yes',
  approval_added: 'yes',
  approval_applied: 'yes',
  approval_withdrawn: 'yes',
  tool_started: 'yes',
  tool_progress: 'noted',
  tool_deferred: 'yes',
  tool_attempt_failed: 'yes',
  tool_result: 'yes',
  background_ended: 'yes',
  tool_results_injected: 'yes',
  compaction_started: 'yes',
  context_compacted: 'yes',
  agent_handed_off: 'yes',
  guardrail_tripped: 'yes',
  guardrails_checked: 'yes',
  output_checked: 'yes',
  limit_reached: 'yes',
  limit_raised: 'yes',
  cancel_requested: 'yes',
  feedback_given: 'noted',
}

/**
 * Returns whether an event matters to a comparison. A take-over by another process does only if it brings another
 * definition.
 */
export function isSignificant(event: RuntimeEvent): boolean {
  if (event.type === 'run_resumed') return event.definition !== undefined
  return compared[event.type] !== 'noted'
}

/** Fields that depend on the run, on the hour, on counts, or on ids of others. */
const incidental: ReadonlySet<string> = new Set([
  'cause',
  'inboxKey',
  'draining',
  'places',
  'runId',
  'seq',
  'epoch',
  'at',
  'parent',
  'sessionId',
  'sessionPlace',
  'durationMs',
  'expiresAt',
  'deadlineAt',
  'retryAt',
  'idempotencyKey',
  'receipt',
  'child',
  'reused',
  'costUsd',
  'usage',
  'contextTokens',
  'tokensBefore',
  'tokensAfter',
])
/** The same, at any depth of an event. */
const incidentalAnywhere: ReadonlySet<string> = new Set([
  'digest',
  'requestDigest',
  'inputDigest',
  'price',
  'providerMessageId',
  'providerCallId',
  'requestId',
  'opaque',
  'raw',
  'recorded',
])
/** Fields that models, tools and their authors wrote: everything in them is compared. */
const verbatim: ReadonlySet<string> = new Set(['input', 'inputSchema', 'output', 'schema', 'data'])

/** An event as another run of the same task may record it: calls are named by their places. */
export function normalizeEvent(event: RuntimeEvent): Json {
  if (event.type === 'run_resumed') return normalizeTakeOver(event.definition)
  return withoutKeys(event as unknown as Json, (key) => incidental.has(key) || incidentalAnywhere.has(key))
}

/** A take-over says which definition is in force from there on. */
function normalizeTakeOver(definition: AgentDefinition | undefined): Json {
  return withoutKeys({ definition } as unknown as Json, (key) => incidentalAnywhere.has(key))
}

function withoutKeys(value: Json, leavesOut: (key: string) => boolean): Json {
  if (typeof value === 'string') return extractRunId(value) === undefined ? value : describeCall(value)
  if (typeof value !== 'object' || value === null) return value
  const within = (item: Json): Json => withoutKeys(item, (key) => incidentalAnywhere.has(key))
  if (Array.isArray(value)) return value.map(within)
  const kept = Object.entries(value).filter(([key]) => !leavesOut(key))
  return Object.fromEntries(kept.map(([key, item]) => [key, verbatim.has(key) ? item : within(item)]))
}

/** Turn, attempt and place of a call, without the run. */
function describeCall(toolCallId: string): string {
  return `call ${toolCallId.split('_').slice(2).join('_')}`
}

export interface RunSpending {
  readonly turns: number
  /** Tool calls that were started. */
  readonly toolCalls: number
  /** Of those, the calls for which a fork got the recorded result: nothing ran. */
  readonly reused: number
  readonly usage: Usage
  /** US dollars, where a price is on record. */
  readonly costUsd?: number
}

/** A run after the event at which two runs part. */
export interface RunTail extends RunSpending {
  readonly runId: RunId
  /** The number of the event at which the runs part; absent if this one ends there. */
  readonly partsAt?: number
  /** Why it ended; absent if it has not. */
  readonly reason?: string
  /** The text of its last message. */
  readonly text: string
  /** The use of the whole run. For a fork, without the part that it shares with the other run. */
  readonly own: RunSpending
  /** Its events from there on, without deltas. */
  readonly events: readonly RuntimeEvent[]
}

/** Where two runs part, and what each did from there on. */
export interface RunsDiff {
  /** Events that say the same in both. */
  readonly shared: number
  /** The differences of the two events at which they part; empty if one run ends there. */
  readonly differences: readonly Difference[]
  readonly left: RunTail
  readonly right: RunTail
}

/**
 * Compares two runs: a run and its fork, or two tries at the same task. It compares their contents, not their ids,
 * token counts, times and writers. Rejects with `RunNotFoundError` for an unknown run.
 */
export async function diffRuns(ledger: Ledger, left: RunId, right: RunId): Promise<RunsDiff> {
  requireLedger('diffRuns', ledger)
  for (const runId of [left, right]) requireTextId('diffRuns', runId)
  const [one, two] = [await readEvents(ledger, left), await readEvents(ledger, right)]
  const [significantOne, significantTwo] = [one.filter(isSignificant), two.filter(isSignificant)]
  const length = Math.min(significantOne.length, significantTwo.length)
  let definition: AgentDefinition | undefined
  let shared = 0
  let differences: readonly Difference[] = []
  for (; shared < length; shared++) {
    const [before, after] = [significantOne[shared] as RuntimeEvent, significantTwo[shared] as RuntimeEvent]
    differences = compareEvents(before, after, definition)
    if (differences.length > 0) break
    if ('definition' in before) definition = before.definition
  }
  return {
    shared,
    differences,
    left: toTail(left, one, significantOne, shared),
    right: toTail(right, two, significantTwo, shared),
  }
}

function compareEvents(
  one: RuntimeEvent,
  two: RuntimeEvent,
  definition: AgentDefinition | undefined,
): readonly Difference[] {
  if (one.type === two.type) return compareValues(normalizeEvent(one), normalizeEvent(two))
  // A run that continues with another text differs where the other run only continues.
  if (one.type === 'run_resumed' || two.type === 'run_resumed') {
    const inForce = (event: RuntimeEvent): Json =>
      event.type === 'run_resumed' ? normalizeEvent(event) : normalizeTakeOver(definition)
    return compareValues(inForce(one), inForce(two))
  }
  return [{ path: 'type', recorded: one.type, happened: two.type }]
}

async function readEvents(ledger: Ledger, runId: RunId): Promise<readonly RuntimeEvent[]> {
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId)) {
    const isShownOnly = event.type === 'tool_progress' && event.spent === undefined
    if (compared[event.type] !== 'delta' && !isShownOnly) events.push(event)
  }
  if (events.length === 0) throw new RunNotFoundError(runId)
  return events
}

/** `shared` of the significant events are the same in both runs. */
function toTail(
  runId: RunId,
  events: readonly RuntimeEvent[],
  significant: readonly RuntimeEvent[],
  shared: number,
): RunTail {
  const [last, first] = [significant[shared - 1], significant[shared]]
  const tail = events.filter(({ seq }) => seq > (last?.seq ?? 0))
  const { parent } = events[0] as EventOf<'run_started'>
  const own = parent?.relation === 'fork' ? events.filter(({ seq }) => seq > parent.seq) : events
  const end = events.find((event) => event.type === 'run_finished')
  const answer = events.findLast((event) => event.type === 'assistant_message_finished')
  return {
    runId,
    ...(first && { partsAt: first.seq }),
    ...(end && { reason: end.reason }),
    text: answer ? joinText(answer.parts) : '',
    ...sumSpending(tail),
    own: sumSpending(own),
    events: tail,
  }
}

function sumSpending(events: readonly RuntimeEvent[]): RunSpending {
  const attempts = new Map<string, { readonly usage: Usage; readonly costUsd?: number }>()
  for (const event of events) {
    // Numbers are totals of an attempt, so a later report replaces an earlier one.
    if (event.type === 'usage_updated') attempts.set(`${event.turn} ${event.attempt}`, event)
    if (event.type === 'tool_result' && event.child) attempts.set(event.toolCallId, event.child)
    if (event.type === 'tool_progress' && event.spent) attempts.set(`tool ${event.seq}`, event.spent)
    if (event.type === 'context_compacted' && event.usage)
      attempts.set(`summary ${event.seq}`, { ...event, usage: event.usage })
  }
  const spent = [...attempts.values()]
  const costs = spent.flatMap(({ costUsd }) => costUsd ?? [])
  return {
    turns: events.filter((event) => event.type === 'model_call_started' && event.attempt === 1).length,
    toolCalls: events.filter((event) => event.type === 'tool_started' && event.attempt === 1).length,
    reused: events.filter((event) => event.type === 'tool_result' && event.reused !== undefined).length,
    usage: spent.reduce<Usage>((sum, { usage }) => addUsage(sum, usage), {}),
    ...(costs.length > 0 && { costUsd: costs.reduce((sum, cost) => sum + cost, 0) }),
  }
}
