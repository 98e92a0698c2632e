import { LedgerDamagedError, type RuntimeEvent } from '@tallystick/core'
import type { StoredRemoval } from '../removal/removal.ts'
import { envelopeOf, eventOf, type StoredEvent } from '../stored-event.ts'
import type { Keyring } from './keyring.ts'
import { Sealer } from './sealed-bytes.ts'
import { isPlain, keyIdOf, openedBody, referredDigests, saidBody } from './stored-body.ts'

/** What the bodies of some events need to be read, beside their own bytes. */
export interface Opening {
  /** Under their ids, the keys that bodies are sealed with, as far as they are there. */
  readonly sealers: ReadonlyMap<string, Sealer>
  /** Large contents under their digests. */
  readonly contents: ReadonlyMap<string, Uint8Array>
  /** Whether there is a keyring: without one, nobody knows whether a key still is. */
  readonly hasKeys: boolean
}

/** Where what is needed comes from. */
export interface OpeningSource {
  readonly keyring: Keyring | undefined
  contents(digests: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>>
  /** The removals that cover events of a run, both ends included. */
  removals(runId: string, fromSeq: number, toSeq: number): Promise<readonly StoredRemoval[]>
}

/** Events of one run or of several, each with what it needs to be read. Where none needs anything, nothing is asked. */
export async function withOpenings(
  page: readonly StoredEvent[],
  source: OpeningSource,
): Promise<readonly StoredEvent[]> {
  if (page.every(({ payload }) => payload !== undefined && isPlain(payload.body))) return page
  const removals = await removalsOf(page, source)
  const sealers = await sealersOf(page, source.keyring)
  const digests = page.flatMap((stored) => digestsOf(stored, sealers))
  const contents = digests.length > 0 ? await source.contents([...new Set(digests)]) : new Map()
  const opening: Opening = { sealers, contents, hasKeys: source.keyring !== undefined }
  return page.map((stored) => {
    if (stored.payload === undefined) {
      const removal = removals.find((each) => covers(each, stored))
      return removal ? { ...stored, removal } : stored
    }
    return isPlain(stored.payload.body) ? stored : { ...stored, opening }
  })
}

function covers(removal: StoredRemoval, { runId, seq }: StoredEvent): boolean {
  return removal.runId === runId && removal.fromSeq <= seq && seq <= removal.toSeq
}

async function removalsOf(
  page: readonly StoredEvent[],
  source: OpeningSource,
): Promise<readonly StoredRemoval[]> {
  const gone = page.filter(({ payload }) => payload === undefined)
  const found: StoredRemoval[] = []
  for (const [runId, events] of Map.groupBy(gone, (stored) => stored.runId)) {
    const seqs = events.map(({ seq }) => seq)
    found.push(...(await source.removals(runId, Math.min(...seqs), Math.max(...seqs))))
  }
  return found
}

async function sealersOf(
  page: readonly StoredEvent[],
  keyring: Keyring | undefined,
): Promise<ReadonlyMap<string, Sealer>> {
  const sealers = new Map<string, Sealer>()
  if (keyring === undefined) return sealers
  for (const id of new Set(page.map(({ payload }) => payload && keyIdIn(payload.body)))) {
    const bytes = id === undefined ? undefined : await keyring.key(id)
    if (id !== undefined && bytes) sealers.set(id, new Sealer({ id, bytes }))
  }
  return sealers
}

/** Damaged bytes name no key; whoever reads them finds the damage. */
function keyIdIn(body: Uint8Array): string | undefined {
  try {
    return keyIdOf(body)
  } catch {
    return undefined
  }
}

function digestsOf(
  { payload, ...envelope }: StoredEvent,
  sealers: ReadonlyMap<string, Sealer>,
): readonly string[] {
  if (payload === undefined || isPlain(payload.body)) return []
  try {
    const opened = openedBody(envelope, payload.body, sealers.get(keyIdOf(payload.body) ?? ''))
    return 'text' in opened ? referredDigests(opened.text) : []
  } catch {
    return []
  }
}

/**
 * The event that was stored, as far as it can be read: where its payload is gone, or the key to it, with what is left of
 * it. Throws `LedgerDamagedError` where a removal, a content or the seal is not what was written, and what `JSON.parse`
 * throws where the bytes are no JSON.
 */
export function openedEvent(stored: StoredEvent): RuntimeEvent {
  const { payload } = stored
  if (payload === undefined) return leftOf(stored)
  if (isPlain(payload.body)) return eventOf(stored, payload.body)
  try {
    return { ...openedFields(stored, payload.body), ...envelopeOf(stored) } as unknown as RuntimeEvent
  } catch (error) {
    throw damaged(stored, error instanceof Error ? error.message : 'its body cannot be opened')
  }
}

/** What is left of an event whose payload was taken away. */
function leftOf(stored: StoredEvent): RuntimeEvent {
  const { kept, kind, at, by, reason } = stored.removal ?? {}
  if (kept === undefined) throw damaged(stored, 'nothing says why its payload is gone')
  const removed = { kind, at, by, ...(reason !== undefined && { reason }) }
  return { ...(JSON.parse(kept) as object), ...envelopeOf(stored), removed } as RuntimeEvent
}

function openedFields(stored: StoredEvent, body: Uint8Array): object {
  const { opening } = stored
  const sealer = opening?.sealers.get(keyIdOf(body) ?? '')
  const opened = openedBody(stored, body, sealer)
  if ('text' in opened) return saidBody(opened, (digest) => opening?.contents.get(digest), sealer)
  return { ...opened.kept, removed: { kind: opening?.hasKeys ? 'erased' : 'sealed' } }
}

function damaged({ runId, seq }: StoredEvent, what: string): LedgerDamagedError {
  return new LedgerDamagedError(
    `Run ${runId} is damaged at seq ${seq}: ${what}. What follows cannot be trusted, so reading stops here. ` +
      'Run verify for the whole picture, and restore a copy.',
  )
}
