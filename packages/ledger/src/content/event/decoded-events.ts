import { LedgerDamagedError, type RuntimeEvent } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/kit'
import { type Json } from '@tallystick/core/vocabulary'
import type { StoredRemoval } from '../../record/removal.ts'
import { maxEventsOfRow } from '../../record/envelope.ts'
import { storedRow, type EventRow } from '../../record/event-row.ts'
import { isSegmentedRow, hasPlainSegments, hasAllSegments } from '../../record/segments/segmented-body.ts'
import { eventOf, isSegment, type StoredRow, type StoredSegment } from '../../record/stored-row.ts'
import { namedRun } from '../../record/stored-ids.ts'
import type { DecodingContext } from '../payload/decoding-context.ts'
import type { Keyring } from '../payload/keyring.ts'
import { Sealer } from '../payload/encrypted-bytes.ts'
import type { Referred } from '../payload/externalized-payload.ts'
import { isPlain, keyIdOf, decodedBody, referredIn, restoredBody, textOf } from './stored-body.ts'
import { eventsWith, unpackedEvents } from './packed-deltas.ts'
import { keyIdOfSegments, plainSegments, segmentsIn, type WantedType } from './segments.ts'
import { restoredHistory, type HistoryPiece } from '../payload/stored-history.ts'

/** Where what is needed comes from. */
export interface DecodingSource {
  readonly keyring: Keyring | undefined
  contents(digests: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>>
  /** The pieces under these names, and all pieces before them. */
  histories(names: readonly string[]): Promise<ReadonlyMap<string, HistoryPiece>>
  /** The removals that cover events of a run, both ends included. */
  removals(runId: string, fromSeq: number, toSeq: number): Promise<readonly StoredRemoval[]>
}

/** Rows of events, each with what it needs to be read. Where none needs anything, nothing is asked. */
export async function withDecodingContext<Row extends EventRow>(
  rows: readonly Row[],
  source: DecodingSource,
): Promise<readonly Row[]> {
  if (rows.every(isPlainRow)) return rows
  const removals = await removalsOf(rows, source)
  const sealers = await sealersOf(rows, source.keyring)
  const referred = rows.map((row) => referredBy(row, sealers))
  const digests = referred.flatMap((each) => each?.references.map(({ digest }) => digest) ?? [])
  const contents = digests.length > 0 ? await source.contents([...new Set(digests)]) : new Map()
  const names = referred.flatMap((each) => each?.history ?? [])
  const histories = names.length > 0 ? await source.histories([...new Set(names)]) : new Map()
  const context: DecodingContext = { sealers, contents, histories, hasKeys: source.keyring !== undefined }
  return rows.map((row, index) => {
    if (isPlainRow(row)) return row
    if (isSegmentedRow(row)) {
      return { ...row, decoding: context, removals: removals.filter((each) => touches(each, row)) }
    }
    if (row.body !== null)
      return { ...row, decoding: context, ...omitUndefined({ referred: referred[index] }) }
    const removal = removals.find((each) => covers(each, row))
    return removal ? { ...row, removal } : row
  })
}

/** Whether a row needs nothing but its own bytes to be read. */
export function isPlainRow(row: EventRow): boolean {
  const { body } = row
  if (body === null) return false
  return isSegmentedRow(row) ? hasPlainSegments(body) : isPlain(body)
}

/** Whether something was taken away from a row. */
function isLess(row: EventRow): boolean {
  return row.body === null || (isSegmentedRow(row) && !hasAllSegments(row.body))
}

function touches(removal: StoredRemoval, { run_id, first_seq, seq }: EventRow): boolean {
  return removal.runId === run_id && removal.fromSeq <= seq && (first_seq ?? seq) <= removal.toSeq
}

function covers(removal: StoredRemoval, { run_id, first_seq, seq }: EventRow): boolean {
  return removal.runId === run_id && removal.fromSeq <= (first_seq ?? seq) && seq <= removal.toSeq
}

async function removalsOf(
  rows: readonly EventRow[],
  source: DecodingSource,
): Promise<readonly StoredRemoval[]> {
  const gone = rows.filter(isLess)
  const found: StoredRemoval[] = []
  for (const [runId, events] of Map.groupBy(gone, ({ run_id }) => run_id)) {
    const firstSeq = Math.min(...events.map(({ first_seq, seq }) => first_seq ?? seq))
    const lastSeq = Math.max(...events.map(({ seq }) => seq))
    found.push(...(await source.removals(runId, firstSeq, lastSeq)))
  }
  return found
}

async function sealersOf(
  rows: readonly EventRow[],
  keyring: Keyring | undefined,
): Promise<ReadonlyMap<string, Sealer>> {
  const sealers = new Map<string, Sealer>()
  if (keyring === undefined) return sealers
  for (const id of new Set(rows.map(keyIdOfRow))) {
    const bytes = id === undefined ? undefined : await keyring.key(id)
    if (id !== undefined && bytes) sealers.set(id, new Sealer({ id, bytes }))
  }
  return sealers
}

/** The id of the key that a row is sealed with; `undefined` also for damaged bytes, which decoding reports later. */
export function keyIdOfRow(row: EventRow): string | undefined {
  if (row.body === null) return undefined
  try {
    return isSegmentedRow(row) ? keyIdOfSegments(row.body) : keyIdOf(row.body)
  } catch {
    return undefined
  }
}

/** What a body refers to; `undefined` where it is plain, or cannot be opened. */
function referredBy(row: EventRow, sealers: ReadonlyMap<string, Sealer>): Referred | undefined {
  const { body } = row
  // What segments say is never stored elsewhere.
  if (body === null || isPlain(body) || isSegmentedRow(row)) return undefined
  try {
    const decoded = decodedBody(storedRow(row) as StoredSegment, body, sealers.get(keyIdOf(body) ?? ''))
    return 'text' in decoded ? referredIn(decoded.text) : undefined
  } catch {
    return undefined
  }
}

/**
 * What a row holds, in order of seq, as far as it can be read: where its payload is gone, or the key to it, with what is
 * left of each event. Throws `LedgerDamagedError` where a removal, a content or the seal is not what was written, or
 * the bytes are no JSON.
 */
export function decodedEvents(stored: StoredRow): readonly RuntimeEvent[] {
  if (isSegment(stored)) return eventsOfSegment(stored)
  return decodedSegments(stored).flat()
}

/**
 * What a row holds, as `decodedEvents` has it, apart by segments; of a row with segments, those with events of wanted types. A
 * row that holds none is one.
 */
export function decodedSegments(
  stored: StoredRow,
  isWanted?: WantedType,
): readonly (readonly RuntimeEvent[])[] {
  if (isSegment(stored)) return [eventsOfSegment(stored)]
  const { payload } = stored
  if (payload === undefined || !hasPlainSegments(payload.body)) {
    const segments = segmentsOf(stored)
    return (isWanted ? segments.filter(({ type }) => isWanted(type)) : segments).map(eventsOfSegment)
  }
  try {
    return plainSegments(stored, payload.body, isWanted)
  } catch (error) {
    throw damaged(stored, messageOf(error))
  }
}

/**
 * The segments of a row, each as if it were a row of its own, and such a row itself where it holds none. Throws
 * `LedgerDamagedError` where its body does not hold them, or it says that it holds more events than a row can.
 */
export function segmentsOf(stored: StoredRow): readonly StoredSegment[] {
  const { firstSeq = stored.seq, seq } = stored
  if (firstSeq > seq || seq - firstSeq >= maxEventsOfRow) {
    throw damaged(stored, `its row is said to begin at seq ${firstSeq} and to end at ${seq}`)
  }
  if (isSegment(stored)) return [stored]
  try {
    return segmentsIn(stored)
  } catch (error) {
    throw damaged(stored, messageOf(error))
  }
}

/** The message of a `SyntaxError` quotes what it could not parse, and no error says what an event says. */
function messageOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'what it says is no JSON'
  return error instanceof Error ? error.message : 'its body cannot be opened'
}

function eventsOfSegment(stored: StoredSegment): readonly RuntimeEvent[] {
  try {
    return readEvents(stored)
  } catch (error) {
    throw error instanceof LedgerDamagedError ? error : damaged(stored, messageOf(error))
  }
}

function readEvents(stored: StoredSegment): readonly RuntimeEvent[] {
  const { payload, firstSeq } = stored
  if (payload === undefined) return eventsWith(stored, factsOf(stored))
  if (firstSeq === undefined && isPlain(payload.body)) return [eventOf(stored, payload.body)]
  const { fields, isWhole } = isPlain(payload.body)
    ? { fields: JSON.parse(textOf(payload.body)) as object, isWhole: true }
    : decodedFields(stored, payload.body)
  return isWhole && firstSeq !== undefined
    ? unpackedEvents(stored, fields as Json)
    : eventsWith(stored, fields)
}

/** What is left of each event of a row whose payload was taken away. */
function factsOf(stored: StoredSegment): object {
  const { kept, kind, at, by, reason } = stored.removal ?? {}
  if (kept === undefined) throw damaged(stored, 'nothing says why its payload is gone')
  const removed = { kind, at, by, ...(reason !== undefined && { reason }) }
  return { ...(JSON.parse(kept) as object), removed }
}

/** The value of a body that is not plain; where its key is gone, what is left of each event. */
function decodedFields(
  stored: StoredSegment,
  body: Uint8Array,
): { readonly fields: object; readonly isWhole: boolean } {
  const { decoding: context } = stored
  const sealer = context?.sealers.get(keyIdOf(body) ?? '')
  const decoded = decodedBody(stored, body, sealer)
  const elsewhere = {
    content: (digest: string) => context?.contents.get(digest),
    history: (name: string) => restoredHistory(name, context?.histories ?? new Map(), sealer),
  }
  if ('text' in decoded) return { fields: restoredBody(decoded, elsewhere, sealer), isWhole: true }
  const removed = { kind: context?.hasKeys ? 'erased' : 'sealed' }
  return { fields: { ...decoded.kept, removed }, isWhole: false }
}

function damaged({ runId, firstSeq, seq }: StoredRow, what: string): LedgerDamagedError {
  return new LedgerDamagedError(
    `Run ${namedRun(runId)} is damaged at seq ${firstSeq ?? seq}: ${what}. What follows cannot be trusted, so reading stops here. ` +
      'Run verify for the whole picture, and restore a copy.',
  )
}
