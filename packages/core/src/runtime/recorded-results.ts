import { digestOf } from '../machine/digest.ts'
import type { Call, RunState } from '../machine/state.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { Outcome, ResultPart } from '../vocabulary/content.ts'
import type { EventOf, Fact, ParentRef } from '../vocabulary/event.ts'
import type { ToolCallId } from '../vocabulary/ids.ts'
import type { Forked } from './fork-edit.ts'

/** A result on record of the run that a fork shares its first events with. */
export interface RecordedResult {
  readonly toolCallId: ToolCallId
  readonly name: string
  /** Of the input that it ran with. */
  readonly inputDigest: string
  readonly outcome: Outcome
  readonly content: readonly ResultPart[]
}

/** Finds the recorded result for a call of a fork, as long as the fork has not gone its own way. */
export type ServeRecorded = (state: RunState, call: Call) => RecordedResult | undefined

/**
 * The facts that end the calls of a fork that were under way where it begins, and of which the other run's record says
 * how they ended: nothing is started again, and nothing is in doubt.
 */
export async function resultsUnderWay(ledger: Ledger, { state, source }: Forked): Promise<readonly Fact[]> {
  if (state.phase !== 'executing' || source.phase !== 'executing') return []
  const { turn, calls } = state
  const facts: Fact[] = []
  for await (const event of ledger.read(source.runId, { fromSeq: source.seq + 1 })) {
    // Every call has its result before the turn goes on.
    if (event.type === 'tool_results_injected') break
    if (event.type !== 'tool_result' || !isFromOutside(event)) continue
    const place = source.calls.find(({ toolCallId }) => toolCallId === event.toolCallId)
    const call = calls.find(({ part }) => part === place?.part)
    if (call?.status !== 'started' && call?.status !== 'deferred') continue
    const { toolCallId, name } = call
    const { outcome, content, toolCallId: reused } = event
    facts.push({ type: 'tool_result', turn, toolCallId, name, outcome, content, durationMs: 0, reused })
  }
  return facts
}

/** Whether the world outside said how a call ended: its tool, which alone took time, or whoever settled it. */
function isFromOutside({ durationMs, outcome }: EventOf<'tool_result'>): boolean {
  return durationMs !== undefined || outcome === 'success' || outcome === 'failed'
}

/** What a fork can be served: the results that its tools have given behind the shared events. */
export async function recordedResults(ledger: Ledger, state: RunState): Promise<ServeRecorded> {
  const { parent } = state
  if (parent?.relation !== 'fork' || state.fork?.diverged) return () => undefined
  const results = await resultsBehind(ledger, parent)
  const served = new Set<string>()
  return ({ fork }, { name, input }) => {
    if (fork?.diverged) return undefined
    // What runs may be what an approver made of what was asked for.
    const inputDigest = digestOf(input)
    const found = results.find(
      (result) =>
        result.name === name &&
        result.inputDigest === inputDigest &&
        !served.has(result.toolCallId) &&
        !fork?.reused.includes(result.toolCallId),
    )
    if (found) served.add(found.toolCallId)
    return found
  }
}

async function resultsBehind(ledger: Ledger, { runId, seq: shared }: ParentRef): Promise<RecordedResult[]> {
  const digests = new Map<ToolCallId, string>()
  const results: RecordedResult[] = []
  for await (const event of ledger.read(runId)) {
    if (event.type === 'tool_requests_collected') {
      for (const { toolCallId, inputDigest } of event.calls) digests.set(toolCallId, inputDigest)
    }
    if (event.type === 'approval_decided' && event.input) digests.set(event.toolCallId, digestOf(event.input))
    if (event.type !== 'tool_result' || event.seq <= shared || !isFromOutside(event)) continue
    const { toolCallId, name, outcome, content } = event
    results.push({ toolCallId, name, outcome, content, inputDigest: digests.get(toolCallId) ?? '' })
  }
  return results
}
