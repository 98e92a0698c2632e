import type { Message } from '@tallystick/core'
import { emptyHistoryDigest, computeHistoryDigests, withDigests } from '@tallystick/core/internal'
import { computeStorableDigests } from '@tallystick/core/store-kit'
import { toCanonicalJson } from '@tallystick/core/vocabulary'
import { digestText } from './chain.ts'
import type { Sealer } from './keyring.ts'
import { hashText } from './sha256.ts'

/**
 * One message of what runs begin with, kept once for all runs that begin with the same messages: `digest` is the running
 * digest of all messages up to this one, `before` that of the message before it. Of a sealed run both are names made of
 * these digests with its key.
 */
export interface HistoryRow {
  readonly digest: string
  /** Null for the first message. */
  readonly before: string | null
  /** The message as canonical JSON; sealed, as `{"sealed":…,"sum":…}`. */
  readonly message: string
}

/** The messages that a run begins with, as a store keeps them. */
export interface CarriedHistory {
  /** The name of all its messages, which the body of the event and the row of the run hold. */
  readonly name: string
  /**
   * The rows that a store does not have yet, in order. `isKnown` answers whether it has the row of a name: what a run adds
   * to the one before it is little, so it is asked from the end.
   */
  rowsAfter(isKnown: (name: string) => boolean): readonly HistoryRow[]
  /** The names of the messages, the last one first. */
  names(): Iterable<string>
}

/** Throws a `ConfigurationError` that names `subject` for a value that JSON cannot hold. */
export function splitHistory(
  messages: readonly Message[],
  subject: string,
  sealer: Sealer | undefined,
): CarriedHistory {
  const digests = computeStorableDigests(messages, subject)
  const nameAt = (index: number): string => nameDigest(digests[index] as string, sealer)
  return {
    name: nameAt(messages.length - 1),
    rowsAfter(isKnown) {
      let from = messages.length
      while (from > 0 && !isKnown(nameAt(from - 1))) from--
      return messages.slice(from).map((message, index): HistoryRow => {
        const before = from + index === 0 ? null : nameAt(from + index - 1)
        const digest = nameAt(from + index)
        const text = toCanonicalJson(message)
        return { digest, before, message: sealer ? sealMessage(text, { digest, before }, sealer) : text }
      })
    },
    *names() {
      for (let index = messages.length - 1; index >= 0; index--) yield nameAt(index)
    },
  }
}

function nameDigest(digest: string, sealer: Sealer | undefined): string {
  return sealer ? sealer.name(digest) : digest
}

type Named = Pick<HistoryRow, 'digest' | 'before'>

/** The sum lets a reader without the key check that the row is unchanged. */
function sealMessage(text: string, { digest, before }: Named, sealer: Sealer): string {
  const sealed = sealer.seal(text, `history ${before ?? ''}`)
  return toCanonicalJson({ sealed, sum: digestText(`${digest} ${before} ${sealed}`) })
}

/** Checks that a row is as it was written. Needs no key. */
export function isHistoryRow(row: HistoryRow): boolean {
  const sealed = parseSealed(row.message)
  if (sealed === undefined) return extendDigest(row.before ?? emptyHistoryDigest, row.message) === row.digest
  const { sealed: text, sum } = sealed
  return toCanonicalJson(sealed) === row.message && digestText(`${row.digest} ${row.before} ${text}`) === sum
}

/** `undefined` for a message that is not sealed, and for damaged text, which then has another digest than its name says. */
function parseSealed(message: string): { readonly sealed: string; readonly sum: string } | undefined {
  if (!message.startsWith('{"sealed":')) return undefined
  try {
    const { sealed, sum } = JSON.parse(message) as { readonly sealed?: unknown; readonly sum?: unknown }
    return typeof sealed === 'string' && typeof sum === 'string' ? { sealed, sum } : undefined
  } catch {
    return undefined
  }
}

/** The running digest of messages, as core computes it. */
function extendDigest(before: string, message: string): string {
  return hashText(`["${before}",${message}]`, 'hex')
}

/** How many histories stay in memory: the next run of a session begins with most of the messages of the last one. */
const maxKnown = 64

/**
 * Restores the histories that runs begin with, and caches the latest. A history is named by its content, so none gets stale.
 */
export class HistoryReader {
  readonly #known = new Map<string, readonly Message[]>()

  /** Forgets everything, so that the next history is read from the store. */
  forget(): void {
    this.#known.clear()
  }

  knows(name: string): boolean {
    return this.#known.has(name)
  }

  /**
   * Returns the messages under a name. `rows` are the last one and those before it, up to one that is known. Throws if one
   * is missing or was changed.
   */
  restore(
    name: string,
    rows: ReadonlyMap<string, HistoryRow>,
    sealer: Sealer | undefined,
  ): readonly Message[] {
    const added: HistoryRow[] = []
    let next: string | null = name
    while (next !== null && !this.#known.has(next)) {
      const row = rows.get(next)
      // A damaged store may hold a circle.
      if (row === undefined || added.length > rows.size) throw new Error(`the history ${next} is not there`)
      added.push(row)
      next = row.before
    }
    const before = next === null ? [] : (this.#known.get(next) as readonly Message[])
    const messages = added.length === 0 ? before : openRows(added.reverse(), before, sealer)
    this.#remember(name, messages)
    return messages
  }

  #remember(name: string, messages: readonly Message[]): void {
    this.#known.delete(name)
    this.#known.set(name, messages)
    const [oldest] = this.#known.keys()
    if (this.#known.size > maxKnown && oldest !== undefined) this.#known.delete(oldest)
  }
}

function openRows(
  rows: readonly HistoryRow[],
  before: readonly Message[],
  sealer: Sealer | undefined,
): readonly Message[] {
  let digest = computeHistoryDigests(before).at(-1) ?? emptyHistoryDigest
  const digests: string[] = []
  const messages = rows.map((row) => {
    const sealed = sealer && parseSealed(row.message)
    const text = sealed ? sealer.open(sealed.sealed, `history ${row.before ?? ''}`) : row.message
    digest = extendDigest(digest, text)
    digests.push(digest)
    if (nameDigest(digest, sealer) !== row.digest) throw new Error(`the history ${row.digest} has changed`)
    return JSON.parse(text) as Message
  })
  return withDigests(messages, digests, before)
}

/** The rows of a history, read one by one from the last, up to what is known. */
export async function readHistory(
  name: string,
  reader: HistoryReader,
  read: (name: string) => HistoryRow | undefined | Promise<HistoryRow | undefined>,
): Promise<ReadonlyMap<string, HistoryRow>> {
  const rows = new Map<string, HistoryRow>()
  for (let next: string | null = name; next !== null && !reader.knows(next) && !rows.has(next);) {
    const row = await read(next)
    if (row === undefined) break
    rows.set(next, row)
    next = row.before
  }
  return rows
}
