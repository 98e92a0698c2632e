import { hash } from 'node:crypto'
import { type Message } from '@tallystick/core'
import { beginningOf, emptyHistoryDigest, historyDigests, withDigests } from '@tallystick/core/machine'
import { storableDigests } from '@tallystick/core/store-kit'
import { canonicalJson } from '@tallystick/core/vocabulary'
import type { Sealer } from './encrypted-bytes.ts'

/**
 * Messages that a run begins with, after those that a store has already. `name` and `before` are the running digests of
 * all messages up to the end of the piece and up to its beginning; of a sealed piece, names made of them with its key.
 */
export interface HistoryPiece {
  readonly name: string
  /** Null where nothing comes before it. */
  readonly before: string | null
  /** Canonical JSON of each message, on a line of its own; sealed, after a byte 1, where the run is. */
  readonly body: Uint8Array
}

/**
 * A piece with the SHA-256 of its bytes, in hex: without the key, a reader can check by it that the piece is
 * unchanged.
 */
export interface HashedPiece extends HistoryPiece {
  readonly digest: string
}

/** A piece as its row holds it. */
export function hashed(piece: HistoryPiece): HashedPiece {
  return { ...piece, digest: hash('sha256', piece.body) }
}

/** What a run begins with, as a store keeps it: a name, and the piece that is not there yet. */
export interface StoredHistory {
  readonly name: string
  readonly length: number
  /** The name of its first messages, as many as `length` says; from 1. */
  nameOf(length: number): string
  /** What comes after its first messages, as many as `from` says. */
  piece(from: number): HistoryPiece
}

/** What a run begins with. A `ConfigurationError` that names `subject` where JSON cannot carry it. */
export function storedHistory(
  messages: readonly Message[],
  { subject, sealer }: { readonly subject: string; readonly sealer: Sealer | undefined },
): StoredHistory {
  const digests = storableDigests(messages, subject)
  const { length } = messages
  const nameOf = (upTo: number): string => named(digests[upTo - 1] ?? emptyHistoryDigest, sealer)
  const name = nameOf(length)
  return {
    name,
    length,
    nameOf,
    piece(from) {
      const before = from === 0 ? null : nameOf(from)
      const lines = messages.slice(from).map((message) => canonicalJson(message))
      const plain = Buffer.from(lines.join('\n'))
      const body = sealer ? Buffer.concat([sealedForm, sealer.seal(plain, placeOf(before))]) : plain
      return { name, before, body }
    },
  }
}

/** How many of its first messages a store has already, found from its end: what a run adds is little. */
export function sharedLength(history: StoredHistory, isThere: (name: string) => boolean): number {
  let { length } = history
  while (length > 0 && !isThere(history.nameOf(length))) length--
  return length
}

function named(digest: string, sealer: Sealer | undefined): string {
  return sealer ? sealer.name(digest) : digest
}

function placeOf(before: string | null): Uint8Array {
  return Buffer.from(`history ${before ?? ''}`)
}

const sealedForm: Uint8Array = Uint8Array.of(1)

/** What was read of pieces that come after each other. */
interface Growth {
  /** Those up to the end of the last piece. */
  messages: readonly Message[]
}

/** Pieces that were opened, with all before them: how many messages come up to the end of each. */
const openedPieces = new WeakMap<HistoryPiece, { readonly growth: Growth; readonly length: number }>()

/** Whether a piece was opened before, with all before it: it is restored without those. */
export function isOpened(piece: HistoryPiece): boolean {
  return openedPieces.has(piece)
}

/**
 * Returns the messages under a name. Throws if a piece is missing or was changed: the name is that of the messages,
 * and the chain of the run commits to the body that holds it. What was opened before is not opened again.
 */
export function restoredHistory(
  name: string,
  pieces: ReadonlyMap<string, HistoryPiece>,
  sealer: Sealer | undefined,
): readonly Message[] {
  const unopened: HistoryPiece[] = []
  let opened: HistoryPiece | undefined
  for (let next: string | null = name; next !== null && opened === undefined;) {
    const piece = pieces.get(next)
    if (piece === undefined || unopened.length > pieces.size) throw new Error(`no history ${next}`)
    if (isOpened(piece)) opened = piece
    else unopened.push(piece)
    next = piece.before
  }
  const before = opened ? messagesUpTo(opened) : []
  return unopened.length === 0 ? before : openPieces(unopened.reverse(), { opened, before }, sealer)
}

function messagesUpTo(piece: HistoryPiece): readonly Message[] {
  const { growth, length } = openedPieces.get(piece) ?? { growth: { messages: [] }, length: 0 }
  return length === growth.messages.length ? growth.messages : beginningOf(growth.messages, length)
}

/** Opens pieces that come after each other, and after those that are opened. */
function openPieces(
  pieces: readonly HistoryPiece[],
  { opened, before }: { readonly opened: HistoryPiece | undefined; readonly before: readonly Message[] },
  sealer: Sealer | undefined,
): readonly Message[] {
  const added: Message[] = []
  const digests: string[] = []
  const ends: number[] = []
  let digest = historyDigests(before).at(-1) ?? emptyHistoryDigest
  for (const piece of pieces) {
    const plain = sealer ? sealer.open(piece.body.subarray(1), placeOf(piece.before)) : piece.body
    const lines = linesOf(plain)
    const after = digestsAfter(digest, lines)
    digest = after.at(-1) ?? digest
    if (named(digest, sealer) !== piece.name) throw new Error(`the history ${piece.name} has changed`)
    for (const line of lines) added.push(JSON.parse(line) as Message)
    digests.push(...after)
    ends.push(before.length + added.length)
  }
  const messages = withDigests(added, digests, before)
  const growth = growthAfter(opened, before.length)
  growth.messages = messages
  for (const [index, piece] of pieces.entries())
    openedPieces.set(piece, { growth, length: ends[index] as number })
  return messages
}

/** What grows from the end of an opened piece: its own growth, unless something else comes after it there already. */
function growthAfter(opened: HistoryPiece | undefined, length: number): Growth {
  const growth = opened && openedPieces.get(opened)?.growth
  return growth?.messages.length === length ? growth : { messages: [] }
}

function linesOf(plain: Uint8Array): readonly string[] {
  return Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength).toString().split('\n')
}

/** The running digests of messages, given the digest before them: see `historyDigests`. */
function digestsAfter(before: string, lines: readonly string[]): readonly string[] {
  let digest = before
  return lines.map((line) => (digest = hash('sha256', `["${digest}",${line}]`)))
}

/** Whether a piece is called by what it says, as far as that is known without a key. */
export function isNamedRight({ name, before, body }: HistoryPiece): boolean {
  return body[0] === 1 || digestsAfter(before ?? emptyHistoryDigest, linesOf(body)).at(-1) === name
}
