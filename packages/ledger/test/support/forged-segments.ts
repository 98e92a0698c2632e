import { longCallId, shortCallId } from '../../src/record/segments/fact-number.ts'
import {
  headFrom,
  headsOf,
  segmentLines,
  segmentedBody,
  type SegmentHead,
} from '../../src/record/segments/segmented-body.ts'

/** A segment on its way into a forged row. */
export interface ForgedSegment {
  readonly type: string
  readonly toolCallId?: string
  /** What it says, as JSON. */
  readonly text: string
}

/** The body of a row with segments, each of them changed. */
export function withSegments(
  runId: string,
  body: Uint8Array,
  change: (segment: ForgedSegment) => ForgedSegment,
): Uint8Array {
  const lines = segmentLines(body)
  if (lines === undefined) throw new Error('The row holds no segments.')
  const { heads } = headsOf(lines.heads) as { readonly heads: readonly unknown[] }
  const forged = heads.map((written, index) => {
    const head = headFrom(written) as unknown as SegmentHead
    const { call, type } = head
    const text = Buffer.from(lines.segments[index] ?? []).toString()
    const segment = change({ type, text, ...(call !== undefined && { toolCallId: longCallId(runId, call) }) })
    const { toolCallId } = segment
    const named = toolCallId === undefined ? {} : { call: shortCallId(runId, toolCallId) ?? toolCallId }
    return { head: { ...head, type: segment.type, ...named } as SegmentHead, text: segment.text }
  })
  return segmentedBody(
    forged.map(({ head }) => head),
    forged.map(({ text }) => text),
  )
}
