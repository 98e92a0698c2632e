import {
  RunNotFoundError,
  textOf,
  type Ledger,
  type RunId,
  type RuntimeEvent,
  type Usage,
} from '@tallystick/core'
import { requireLedger } from '@tallystick/core/kit'
import { requireTextId } from '@tallystick/core/store-kit'
import { addUsage, type AgentDefinition, type EventOf, type Json } from '@tallystick/core/vocabulary'
import { differencesOf, type Difference } from './difference.ts'
import { isSignificant, normalizedEvent, normalizedTakeOver } from './normalized-event.ts'

/** What a part of a run used. */
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

/** What a run did after the event at which two runs part, and what it used from there on. */
export interface RunTail extends RunSpending {
  readonly runId: RunId
  /** Why it ended; absent if it has not. */
  readonly reason?: string
  /** The text of its last message. */
  readonly text: string
  /** What the run used since its first event. For a fork, the part that it shares with the other run is left out. */
  readonly own: RunSpending
  /** Its events from there on, but for deltas. */
  readonly events: readonly RuntimeEvent[]
}

/** Where two runs part, and what each did from there on. */
export interface RunsDiff {
  /** Events that say the same in both. */
  readonly shared: number
  /** What differs between the two events at which they part; empty where one run ends there. */
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
  const [one, two] = [await eventsOf(ledger, left), await eventsOf(ledger, right)]
  const [significantOne, significantTwo] = [one.filter(isSignificant), two.filter(isSignificant)]
  const length = Math.min(significantOne.length, significantTwo.length)
  let definition: AgentDefinition | undefined
  let shared = 0
  let differences: readonly Difference[] = []
  for (; shared < length; shared++) {
    const [before, after] = [significantOne[shared] as RuntimeEvent, significantTwo[shared] as RuntimeEvent]
    differences = betweenEvents(before, after, definition)
    if (differences.length > 0) break
    if ('definition' in before) definition = before.definition
  }
  return {
    shared,
    differences,
    left: tailOf(left, one, significantOne[shared - 1]),
    right: tailOf(right, two, significantTwo[shared - 1]),
  }
}

function betweenEvents(
  one: RuntimeEvent,
  two: RuntimeEvent,
  definition: AgentDefinition | undefined,
): readonly Difference[] {
  if (one.type === two.type) return differencesOf(normalizedEvent(one), normalizedEvent(two))
  // A run that continues with another text differs where the other run only continues.
  if (one.type === 'run_resumed' || two.type === 'run_resumed') {
    const inForce = (event: RuntimeEvent): Json =>
      event.type === 'run_resumed' ? normalizedEvent(event) : normalizedTakeOver(definition)
    return differencesOf(inForce(one), inForce(two))
  }
  return [{ path: 'type', recorded: one.type, happened: two.type }]
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

function tailOf(runId: RunId, events: readonly RuntimeEvent[], last: RuntimeEvent | undefined): RunTail {
  const tail = events.filter(({ seq }) => seq > (last?.seq ?? 0))
  const { parent } = events[0] as EventOf<'run_started'>
  const own = parent?.relation === 'fork' ? events.filter(({ seq }) => seq > parent.seq) : events
  const end = events.at(-1) as RuntimeEvent
  const answer = events.findLast((event) => event.type === 'assistant_message_finished')
  return {
    runId,
    ...(end.type === 'run_finished' && { reason: end.reason }),
    text: answer ? textOf(answer.parts) : '',
    ...spendingOf(tail),
    own: spendingOf(own),
    events: tail,
  }
}

function spendingOf(events: readonly RuntimeEvent[]): RunSpending {
  const attempts = new Map<string, { readonly usage: Usage; readonly costUsd?: number }>()
  for (const event of events) {
    // Numbers are totals of an attempt, so a later report replaces an earlier one.
    if (event.type === 'usage_updated') attempts.set(`${event.turn} ${event.attempt}`, event)
    if (event.type === 'tool_result' && event.child) attempts.set(event.toolCallId, event.child)
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
