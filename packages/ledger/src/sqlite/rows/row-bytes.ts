import type { EventRow } from '../../record/event-row.ts'
import { isSegmentedRow, segmentedType } from '../../record/segments/segmented-body.ts'

const digestBytes = 32
const saltBytes = 16

/**
 * The columns of a row that are bytes, laid together: handing out a value of its own for each would take SQLite longer than
 * finding the row. Null where one of them does not hold as many bytes as were written: such a row is read column by column.
 */
export const rowBytes: string = `case when typeof(event.body_commit) = 'blob'
    and length(event.body_commit) = case when event.type = '${segmentedType}' and event.first_seq is not null then 0 else ${digestBytes} end
    and typeof(event.hash) = 'blob' and length(event.hash) = ${digestBytes} then
      case when payload.salt is null and payload.body is null
        then cast(event.body_commit || event.hash as blob)
      when typeof(payload.salt) = 'blob' and length(payload.salt) = ${saltBytes} and typeof(payload.body) = 'blob'
        then cast(event.body_commit || event.hash || payload.salt || payload.body as blob)
      end
  end`

/** A row with its bytes laid together. */
export type JoinedRow = Omit<
  EventRow,
  'body_commit' | 'hash' | 'salt' | 'body' | 'removal' | 'removals' | 'decoding'
> & {
  readonly bytes: Uint8Array | null
}

/** The row with its bytes apart; `whole` reads one whose bytes could not be laid together. */
export function partedRow(
  row: JoinedRow,
  whole: (pos: number) => EventRow | undefined,
): EventRow | undefined {
  const { bytes } = row
  if (bytes === null) return whole(row.pos)
  // A row of segments has no commitment of its own.
  const hashAt = isSegmentedRow(row) ? 0 : digestBytes
  const saltAt = hashAt + digestBytes
  const bodyAt = saltAt + saltBytes
  const isThere = bytes.length >= bodyAt
  return {
    pos: row.pos,
    run_id: row.run_id,
    first_seq: row.first_seq,
    seq: row.seq,
    epoch: row.epoch,
    type: row.type,
    v: row.v,
    turn: row.turn,
    tool_call_id: row.tool_call_id,
    at: row.at,
    once_key: row.once_key,
    body_commit: bytes.subarray(0, hashAt),
    hash: bytes.subarray(hashAt, saltAt),
    salt: isThere ? bytes.subarray(saltAt, bodyAt) : null,
    body: isThere ? bytes.subarray(bodyAt) : null,
  }
}
