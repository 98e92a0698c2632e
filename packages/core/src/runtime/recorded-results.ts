import type { Call, RunState } from '../machine/state.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { Outcome, ResultPart } from '../vocabulary/content.ts'
import type { ToolCallId } from '../vocabulary/ids.ts'

/** A result on record of the run that a fork shares its first events with. */
export interface RecordedResult {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly inputDigest: string
  readonly outcome: Outcome
  readonly content: readonly ResultPart[]
}

/** Finds the recorded result for a call of a fork, as long as the fork has not gone its own way. */
export type ServeRecorded = (state: RunState, call: Call) => RecordedResult | undefined

/** What a fork can be served: the results that its tools have given behind the shared events. */
export async function recordedResults(ledger: Ledger, state: RunState): Promise<ServeRecorded> {
  const { parent } = state
  if (parent?.relation !== 'fork' || state.fork?.diverged) return () => undefined
  const digests = new Map<ToolCallId, string>()
  const results: RecordedResult[] = []
  for await (const event of ledger.read(parent.runId)) {
    if (event.type === 'tool_requests_collected') {
      for (const { toolCallId, inputDigest } of event.calls) digests.set(toolCallId, inputDigest)
    }
    // Only a tool's own ending says how long it took.
    if (event.type !== 'tool_result' || event.seq <= parent.seq || event.durationMs === undefined) continue
    const { toolCallId, name, outcome, content } = event
    results.push({ toolCallId, name, outcome, content, inputDigest: digests.get(toolCallId) ?? '' })
  }
  const served = new Set<string>()
  return ({ fork }, { name, inputDigest }) => {
    if (fork?.diverged) return undefined
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
