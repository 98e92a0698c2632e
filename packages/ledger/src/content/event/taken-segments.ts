import { LedgerDamagedError } from '@tallystick/core'
import { withoutSegments, type SeveralPayload } from '../../record/several/segment-commitments.ts'
import { headsOf, isGone, segmentLines } from '../../record/several/several-form.ts'
import { extentsOf } from './segments.ts'

/** A row of segments, as far as taking some of them away needs it. */
export interface SeveralRow extends SeveralPayload {
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
export function presentEvents(row: SeveralRow, range: Range): number {
  let events = 0
  for (const { fromSeq, toSeq, isThere } of placesOf(row)) {
    if (isThere && isWithin({ fromSeq, toSeq }, range)) events += toSeq - fromSeq + 1
  }
  return events
}

/** The payload of a row without its segments that lie within a range. */
export function withoutEvents(row: SeveralRow, range: Range): SeveralPayload {
  const places = placesOf(row)
  return withoutSegments(row, (index) => {
    const place = places[index]
    return place !== undefined && isWithin(place, range)
  })
}

function isWithin({ fromSeq, toSeq }: Range, range: Range): boolean {
  return range.fromSeq <= fromSeq && toSeq <= range.toSeq
}

function placesOf(row: SeveralRow): readonly (Range & { readonly isThere: boolean })[] {
  const lines = segmentLines(row.body)
  if (lines === undefined) {
    throw new LedgerDamagedError(
      `The row at place ${row.pos} does not hold what rows of several events hold, so nothing was taken away from it. Run ` +
        'verify on the ledger, and restore a copy.',
    )
  }
  const extents = extentsOf(row, headsOf(lines.heads).heads)
  return extents.map((extent, index) => {
    return { ...extent, isThere: !isGone(lines.segments[index] ?? new Uint8Array()) }
  })
}
