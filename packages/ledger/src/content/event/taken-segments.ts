import { LedgerDamagedError } from '@tallystick/core'
import { withoutSegments, type SegmentedPayload } from '../../record/segments/segment-commitments.ts'
import { headsOf, isGone, segmentLines } from '../../record/segments/segmented-body.ts'
import { extentsOf } from './segments.ts'

/** A segmented row, as far as taking some of its segments away needs it. */
export interface SegmentedRow extends SegmentedPayload {
  readonly pos: number
  readonly firstSeq: number
  readonly seq: number
}

/** Events, both ends included. */
interface Range {
  readonly fromSeq: number
  readonly toSeq: number
}

/** How many events of a range are in segments that lie within it, and that are still there. */
export function presentEvents(row: SegmentedRow, range: Range): number {
  let events = 0
  for (const { fromSeq, toSeq, isThere } of placesOf(row)) {
    if (isThere && isWithin({ fromSeq, toSeq }, range)) events += toSeq - fromSeq + 1
  }
  return events
}

/** The payload of a row without its segments that lie within a range. */
export function withoutEvents(row: SegmentedRow, range: Range): SegmentedPayload {
  const places = placesOf(row)
  return withoutSegments(row, (index) => {
    const place = places[index]
    return place !== undefined && isWithin(place, range)
  })
}

function isWithin({ fromSeq, toSeq }: Range, range: Range): boolean {
  return range.fromSeq <= fromSeq && toSeq <= range.toSeq
}

function placesOf(row: SegmentedRow): readonly (Range & { readonly isThere: boolean })[] {
  const lines = segmentLines(row.body)
  if (lines === undefined) {
    throw new LedgerDamagedError(
      `The row at place ${row.pos} does not hold the segments that its columns announce, so nothing was taken away from it. Run ` +
        'verify on the ledger, and restore a copy.',
    )
  }
  const extents = extentsOf(row, headsOf(lines.heads).heads)
  return extents.map((extent, index) => {
    return { ...extent, isThere: !isGone(lines.segments[index] ?? new Uint8Array()) }
  })
}
