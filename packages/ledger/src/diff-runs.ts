import {
  addUsage,
  canonicalJson,
  RunNotFoundError,
  textOf,
  type Json,
  type Ledger,
  type RunId,
  type RuntimeEvent,
  type Usage,
} from '@tallystick/core'
import { differencesOf, type Difference } from './difference.ts'

/** What a run did behind the place where two runs part. */
export interface RunTail {
  readonly runId: RunId
  /** Why it ended; absent where it has not. */
  readonly reason?: string
  /** The text of its last message. */
  readonly text: string
  readonly turns: number
  readonly toolCalls: number
  /** What it took from there on, and nothing of what both share. */
  readonly usage: Usage
  readonly costUsd?: number
  /** Its events from there on, but for deltas. */
  readonly events: readonly RuntimeEvent[]
}

/** Where two runs part, and what each did from there on. */
export interface RunsDiff {
  /** Events that say the same in both, ids and times apart. */
  readonly shared: number
  /** What differs between the two events at which they part; empty where one run ends there. */
  readonly differences: readonly Difference[]
  readonly left: RunTail
  readonly right: RunTail
}

/**
 * Lays two runs side by side: a run and its fork, or two tries at the same task. Deltas, times, and what names a run are
 * left out of the comparison. Rejects with `RunNotFoundError` for a run that is not there.
 */
export async function diffRuns(ledger: Ledger, left: RunId, right: RunId): Promise<RunsDiff> {
  const [one, two] = await Promise.all([eventsOf(ledger, left), eventsOf(ledger, right)])
  let shared = 0
  let differences: readonly Difference[] = []
  const length = Math.min(one.length, two.length)
  for (; shared < length; shared++) {
    differences = betweenEvents([one[shared]!, left], [two[shared]!, right])
    if (differences.length > 0) break
  }
  return {
    shared,
    differences,
    left: tailOf(left, one, shared),
    right: tailOf(right, two, shared),
  }
}

function betweenEvents(
  [one, left]: readonly [RuntimeEvent, RunId],
  [two, right]: readonly [RuntimeEvent, RunId],
): readonly Difference[] {
  if (one.type !== two.type) return [{ path: 'type', recorded: one.type, happened: two.type }]
  return differencesOf(comparable(one, left), comparable(two, right))
}

/** Deltas only show progress: the message says what they say. */
async function eventsOf(ledger: Ledger, runId: RunId): Promise<readonly RuntimeEvent[]> {
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId)) {
    if (!event.type.endsWith('_delta') && event.type !== 'tool_progress') events.push(event)
  }
  if (events.length === 0) throw new RunNotFoundError(runId)
  return events
}

/** An event without what names its run, and without what depends on the hour. */
function comparable(event: RuntimeEvent, runId: RunId): Json {
  const { at: _at, seq: _seq, epoch: _epoch, runId: _runId, ...rest } = event
  const own = Object.entries(rest).filter(
    ([key]) =>
      !['parent', 'sessionId', 'sessionPlace', 'requestDigest', 'durationMs', 'reused'].includes(key),
  )
  const text = canonicalJson(Object.fromEntries(own) as Json)
  return JSON.parse(text.replaceAll(runId.replaceAll('-', ''), 'run').replaceAll(runId, 'run')) as Json
}

function tailOf(runId: RunId, events: readonly RuntimeEvent[], shared: number): RunTail {
  const tail = events.slice(shared)
  const attempts = new Map<string, { readonly usage: Usage; readonly costUsd?: number }>()
  for (const event of tail) {
    if (event.type === 'usage_updated') attempts.set(`${event.turn} ${event.attempt}`, event)
    if (event.type === 'tool_result' && event.child) attempts.set(event.toolCallId, event.child)
    if (event.type === 'context_compacted' && event.usage)
      attempts.set(`summary ${event.seq}`, { ...event, usage: event.usage })
  }
  const spent = [...attempts.values()]
  const costs = spent.flatMap(({ costUsd }) => costUsd ?? [])
  const end = tail.findLast((event) => event.type === 'run_finished')
  const answer = tail.findLast((event) => event.type === 'assistant_message_finished')
  return {
    runId,
    ...(end && { reason: end.reason }),
    text: answer ? textOf(answer.parts) : '',
    turns: tail.filter((event) => event.type === 'model_call_started' && event.attempt === 1).length,
    toolCalls: tail.filter((event) => event.type === 'tool_started' && event.attempt === 1).length,
    usage: spent.reduce<Usage>((sum, { usage }) => addUsage(sum, usage), {}),
    ...(costs.length > 0 && { costUsd: costs.reduce((sum, cost) => sum + cost, 0) }),
    events: tail,
  }
}
