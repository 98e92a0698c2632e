import { hash } from 'node:crypto'
import { type Message } from '@tallystick/core'
import { emptyHistoryDigest, withDigests } from '@tallystick/core/machine'
import { storableDigests } from '@tallystick/core/store-kit'
import { canonicalJson, type Json } from '@tallystick/core/vocabulary'
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
      const lines = messages.slice(from).map((message) => canonicalJson(message as unknown as Json))
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

/** The messages of a piece, and the running digest after each. */
interface DecodedPiece {
  readonly messages: readonly Message[]
  readonly digests: readonly string[]
}

const sealedForm: Uint8Array = Uint8Array.of(1)

/** Pieces that several events of one batch begin with are opened once. */
const decodedPieces = new WeakMap<HistoryPiece, DecodedPiece>()

/**
 * Returns the messages under a name. Throws if a piece is missing or was changed: the name is that of the messages,
 * and the chain of the run commits to the body that holds it.
 */
export function restoredHistory(
  name: string,
  pieces: ReadonlyMap<string, HistoryPiece>,
  sealer: Sealer | undefined,
): readonly Message[] {
  const chain: HistoryPiece[] = []
  for (let next: string | null = name; next !== null;) {
    const piece = pieces.get(next)
    if (piece === undefined || chain.length > pieces.size) throw new Error(`no history ${next}`)
    chain.push(piece)
    next = piece.before
  }
  let digest = emptyHistoryDigest
  const decoded = chain.reverse().map((piece) => {
    const { messages, digests } = decodedPieces.get(piece) ?? openPiece(piece, digest, sealer)
    digest = digests.at(-1) ?? digest
    return { messages, digests }
  })
  return withDigests(
    decoded.flatMap(({ messages }) => messages),
    decoded.flatMap(({ digests }) => digests),
  )
}

function openPiece(piece: HistoryPiece, before: string, sealer: Sealer | undefined): DecodedPiece {
  const plain = sealer ? sealer.open(piece.body.subarray(1), placeOf(piece.before)) : piece.body
  const lines = linesOf(plain)
  const digests = digestsAfter(before, lines)
  const digest = digests.at(-1) ?? before
  if (named(digest, sealer) !== piece.name) throw new Error(`the history ${piece.name} has changed`)
  const decoded = { messages: lines.map((line) => JSON.parse(line) as Message), digests }
  const known = { ...decoded, messages: withDigests(decoded.messages, digests) }
  decodedPieces.set(piece, known)
  return known
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
