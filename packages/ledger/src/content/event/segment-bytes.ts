import type { WrittenBody } from './stored-body.ts'

/** What the segments of one row have at most, in bytes: a reader of one event reads them all. */
const maxSegmentsBytes = 32 * 1024

/**
 * The bytes of the bodies that share a row. They are counted only where they may be too many: to count them takes a pass over
 * the text, and its length bounds them.
 */
export class SegmentBytes {
  #bytes = 0
  readonly #uncounted: WrittenBody[] = []

  constructor(first: WrittenBody) {
    this.#estimate(first)
  }

  /** Whether a body fits into the row, too; from then on it is among the others. */
  takes(body: WrittenBody): boolean {
    if (this.#bytes + mostBytesOf(body) <= maxSegmentsBytes) {
      this.#estimate(body)
      return true
    }
    for (const each of this.#uncounted) this.#bytes += bytesIn(each) - mostBytesOf(each)
    this.#uncounted.length = 0
    const bytes = bytesIn(body)
    if (this.#bytes + bytes > maxSegmentsBytes) return false
    this.#bytes += bytes
    return true
  }

  #estimate(body: WrittenBody): void {
    this.#bytes += mostBytesOf(body)
    this.#uncounted.push(body)
  }
}

function bytesIn({ written }: WrittenBody): number {
  return typeof written === 'string' ? Buffer.byteLength(written) : written.length
}

/** A code unit is at most three bytes of UTF-8. */
function mostBytesOf({ written }: WrittenBody): number {
  return typeof written === 'string' ? 3 * written.length : written.length
}
