import { LedgerDamagedError, type RuntimeEvent } from '@tallystick/core'
import { type Json } from '@tallystick/core/vocabulary'
import type { StoredRemoval } from '../../record/removal.ts'
import { storedRow, type EventRow } from '../../record/event-row.ts'
import { eventOf, type StoredRow } from '../../record/stored-row.ts'
import { namedRun } from '../../record/stored-ids.ts'
import type { DecodingContext } from '../payload/decoding-context.ts'
import type { Keyring } from '../payload/keyring.ts'
import { Sealer } from '../payload/encrypted-bytes.ts'
import type { Referred } from '../payload/externalized-payload.ts'
import { isPlain, keyIdOf, decodedBody, referredIn, restoredBody, textOf } from './stored-body.ts'
import { eventsWith, unpackedEvents } from './packed-deltas.ts'
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
  if (rows.every(({ body }) => body !== null && isPlain(body))) return rows
  const removals = await removalsOf(rows, source)
  const sealers = await sealersOf(rows, source.keyring)
  const referred = rows.map((row) => referredBy(row, sealers))
  const digests = referred.flatMap(({ references }) => references.map(({ digest }) => digest))
  const contents = digests.length > 0 ? await source.contents([...new Set(digests)]) : new Map()
  const names = referred.flatMap(({ history }) => history ?? [])
  const histories = names.length > 0 ? await source.histories([...new Set(names)]) : new Map()
  const context: DecodingContext = { sealers, contents, histories, hasKeys: source.keyring !== undefined }
  return rows.map((row) => {
    if (row.body !== null) return isPlain(row.body) ? row : { ...row, decoding: context }
    const removal = removals.find((each) => covers(each, row))
    return removal ? { ...row, removal } : row
  })
}

function covers(removal: StoredRemoval, { run_id, first_seq, seq }: EventRow): boolean {
  return removal.runId === run_id && removal.fromSeq <= (first_seq ?? seq) && seq <= removal.toSeq
}

async function removalsOf(
  rows: readonly EventRow[],
  source: DecodingSource,
): Promise<readonly StoredRemoval[]> {
  const gone = rows.filter(({ body }) => body === null)
  const found: StoredRemoval[] = []
  for (const [runId, events] of Map.groupBy(gone, ({ run_id }) => run_id)) {
    const seqs = events.map(({ seq }) => seq)
    found.push(...(await source.removals(runId, Math.min(...seqs), Math.max(...seqs))))
  }
  return found
}

async function sealersOf(
  rows: readonly EventRow[],
  keyring: Keyring | undefined,
): Promise<ReadonlyMap<string, Sealer>> {
  const sealers = new Map<string, Sealer>()
  if (keyring === undefined) return sealers
  for (const id of new Set(rows.map(({ body }) => body && keyIdIn(body)))) {
    const bytes = id == null ? undefined : await keyring.key(id)
    if (id != null && bytes) sealers.set(id, new Sealer({ id, bytes }))
  }
  return sealers
}

/** Returns the key id of a body; `undefined` for damaged bytes, which decoding reports later. */
function keyIdIn(body: Uint8Array): string | undefined {
  try {
    return keyIdOf(body)
  } catch {
    return undefined
  }
}

function referredBy(row: EventRow, sealers: ReadonlyMap<string, Sealer>): Referred {
  const { body } = row
  if (body === null || isPlain(body)) return { references: [] }
  try {
    const decoded = decodedBody(storedRow(row), body, sealers.get(keyIdOf(body) ?? ''))
    return 'text' in decoded ? referredIn(decoded.text) : { references: [] }
  } catch {
    return { references: [] }
  }
}

/**
 * What a row holds, in order of seq, as far as it can be read: where its payload is gone, or the key to it, with what is
 * left of each event. Throws `LedgerDamagedError` where a removal, a content or the seal is not what was written, and
 * what `JSON.parse` throws where the bytes are no JSON.
 */
export function decodedEvents(stored: StoredRow): readonly RuntimeEvent[] {
  const { payload, firstSeq } = stored
  if (payload === undefined) return eventsWith(stored, factsOf(stored))
  if (firstSeq === undefined && isPlain(payload.body)) return [eventOf(stored, payload.body)]
  const text = isPlain(payload.body) ? (JSON.parse(textOf(payload.body)) as Json) : undefined
  try {
    const { fields, isWhole } =
      text === undefined ? decodedFields(stored, payload.body) : { fields: text, isWhole: true }
    return isWhole && firstSeq !== undefined
      ? unpackedEvents(stored, fields as Json)
      : eventsWith(stored, fields as object)
  } catch (error) {
    throw damaged(stored, error instanceof Error ? error.message : 'its body cannot be opened')
  }
}

/** What is left of each event of a row whose payload was taken away. */
function factsOf(stored: StoredRow): object {
  const { kept, kind, at, by, reason } = stored.removal ?? {}
  if (kept === undefined) throw damaged(stored, 'nothing says why its payload is gone')
  const removed = { kind, at, by, ...(reason !== undefined && { reason }) }
  return { ...(JSON.parse(kept) as object), removed }
}

/** The value of a body that is not plain; where its key is gone, what is left of each event. */
function decodedFields(
  stored: StoredRow,
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
