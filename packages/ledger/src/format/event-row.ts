import { LedgerDamagedError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { findEventIdFault } from '@tallystick/core/internal'
import { parseRunId, parseToolCallId } from '@tallystick/core/vocabulary'
import { decodeEvent, type Decoding, type EncodedEvent, hasUpcaster, upcast } from './body.ts'
import { commitTo, type Digest, genesisHash, computeLinkHash, drawSalt, type RowEnvelope } from './chain.ts'

/** A message names so many bad ids, each cut after so many characters. */
const maxIdsNamed = 20
const maxIdCharacters = 80

/**
 * Checks that a text from a store is a run id. Ids become part of commands, file names and generated code, so a text of
 * another shape never leaves a store under the type of an id.
 */
export function isRunId(text: unknown): text is RunId {
  return typeof text === 'string' && parseRunId(text) !== undefined
}

/** A value stored as an id, as JSON of printable ASCII: no text can leave its place in a message. */
export function quoteId(text: unknown): string {
  const json = JSON.stringify(String(text).slice(0, maxIdCharacters))
  return json.replaceAll(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Returns a run's id for a message: as it is, or quoted if it is invalid. */
export function formatRunId(runId: string): string {
  return isRunId(runId) ? runId : quoteId(runId)
}

/** A list of runs met rows with invalid run ids. It has listed all other runs before. */
export class BadRunIdsError extends LedgerDamagedError {
  /** The invalid ids in the store. */
  readonly found: readonly string[]

  constructor(found: readonly string[]) {
    const named = found.slice(0, maxIdsNamed).map(quoteId).join(', ')
    const more = found.length > maxIdsNamed ? ` and ${found.length - maxIdsNamed} more` : ''
    super(
      `The ledger holds rows of runs under ids that are not run ids: ${named}${more}. The runtime writes no such rows, and ` +
        'they were left out of the list. Run verify for the whole picture, and restore a copy.',
    )
    this.found = found
  }
}

/** Leaves rows with invalid run ids out of a list, and throws when the list has ended. */
export class RunIdSieve {
  readonly #bad: string[] = []

  /** Returns `false` for an invalid run id, and remembers it. */
  keeps(text: string): boolean {
    if (isRunId(text)) return true
    this.#bad.push(text)
    return false
  }

  /** Throws a `BadRunIdsError` if rows were left out. */
  end(): void {
    if (this.#bad.length > 0) throw new BadRunIdsError(this.#bad)
  }
}

/** Gets every run of a list; the error is that of rows which had to be left out. */
export async function listUntilBadIds<T>(
  runs: AsyncIterable<T>,
  onRun: (run: T) => void,
): Promise<{ readonly error?: BadRunIdsError }> {
  try {
    for await (const run of runs) onRun(run)
    return {}
  } catch (error) {
    if (error instanceof BadRunIdsError) return { error }
    throw error
  }
}

/** The columns of an event, under the names that they have in every store. */
export interface EventRow extends RowEnvelope {
  /** Place in the store, from 1, in the order of commits. */
  readonly pos: number
  /** JSON of all that is not envelope: see `body.ts`. */
  readonly body: string
  /** Null once the content was removed. */
  readonly salt: string | null
  /** The commitment to the body that was removed; null if the body is there. */
  readonly commitment: Digest | null
  readonly hash: Digest
}

/** A row with what its body needs to be read. */
export type ReadableRow = EventRow & { readonly decoding?: Decoding | undefined }

/** The columns of an event in the order in which they are inserted. */
export const eventColumns: readonly (keyof EventRow)[] = [
  ...(['pos', 'run_id', 'seq', 'type', 'turn', 'tool_call_id', 'attempt', 'at'] as const),
  ...(['epoch', 'v', 'key_id', 'body', 'salt', 'commitment', 'hash'] as const),
]

/** An event as it is written: the store gives it its place, and its content is there. */
export type NewRow = Omit<EventRow, 'pos' | 'salt' | 'commitment'> & { readonly salt: string }

/** Links encoded events to the one with this hash. */
export function linkEvents(before: Digest, events: readonly EncodedEvent[]): readonly NewRow[] {
  let hash = before
  return events.map(({ envelope, body }) => {
    const salt = drawSalt()
    hash = computeLinkHash(hash, envelope, commitTo(salt, body))
    return { ...envelope, body, salt, hash }
  })
}

const envelopeColumns = eventColumns.slice(1, 11) as readonly (keyof RowEnvelope)[]

/** If the row holds this very event, only the acknowledgement of its append was lost. */
export function isSameEvent(row: EventRow, { envelope, body }: EncodedEvent): boolean {
  return row.body === body && envelopeColumns.every((column) => row[column] === envelope[column])
}

/** A fault at one place of a ledger. Holds digests, numbers and names, never content. */
export interface Fault {
  /** The column or fact that is wrong. */
  readonly what: string
  readonly expected: string
  readonly found: string
}

/** A fault, with numbers as text. */
export function createFault(what: string, expected: string | number, found: string | number): Fault {
  return { what, expected: String(expected), found: String(found) }
}

/** The current end of the chain of a run. */
export type Link = Pick<EventRow, 'seq' | 'pos' | 'epoch' | 'hash'>

/** The link before the first event. */
export const genesis: Link = { seq: 0, pos: 0, epoch: 1, hash: genesisHash }

/** The first fault of a row, given the link before it; `undefined` if the row is as it was written. */
export function findLinkFault(previous: Link, row: EventRow): Fault | undefined {
  if (row.seq !== previous.seq + 1) return createFault('seq', previous.seq + 1, row.seq)
  const mistyped = findTypeFault(row)
  if (mistyped) return mistyped
  const { salt, body, commitment, hash } = row
  if ((salt === null) !== (commitment !== null))
    return createFault('salt', 'a salt or a commitment', 'both or none')
  const due = computeLinkHash(previous.hash, row, commitment ?? commitTo(salt as string, body))
  if (due !== hash) return createFault('hash', due, hash)
  if (row.epoch < previous.epoch) return createFault('epoch', `${previous.epoch} or more`, row.epoch)
  if (row.pos <= previous.pos) return createFault('pos', `more than ${previous.pos}`, row.pos)
  return findIdFault(row)
}

const numberColumns: ReadonlySet<string> = new Set<keyof EventRow>([
  ...(['pos', 'seq', 'turn', 'attempt', 'at', 'epoch', 'v'] as const),
])
const nullableColumns: ReadonlySet<string> = new Set<keyof EventRow>([
  ...(['tool_call_id', 'attempt', 'key_id', 'salt', 'commitment'] as const),
])

/** Damaged bytes may be read as another type than their column has, even from tables that refuse to store one. */
function findTypeFault(row: EventRow): Fault | undefined {
  for (const column of eventColumns) {
    const value: unknown = row[column]
    if (value === null && nullableColumns.has(column)) continue
    const isNumber = numberColumns.has(column)
    if (isNumber ? Number.isSafeInteger(value) : typeof value === 'string') continue
    return createFault(column, isNumber ? 'a whole number' : 'a text', `a ${typeof value}`)
  }
  return undefined
}

/** Checked last: the chain finds a changed id, so an invalid one was written like this. */
function findIdFault({ run_id, tool_call_id }: EventRow): Fault | undefined {
  if (!isRunId(run_id)) return createFault('run_id', 'a run id', quoteId(run_id))
  if (tool_call_id === null || parseToolCallId(tool_call_id) !== undefined) return undefined
  return createFault('tool_call_id', 'a tool call id', quoteId(tool_call_id))
}

/** Which version of an event a reader wants: the one on record, or the newest. */
export type Version = 'recorded' | 'newest'

/**
 * The event of a row, checked against the link before it, so that nothing is ever built on text that has changed;
 * `undefined` if it is not the next one of its run. Throws `LedgerDamagedError` if it is not as it was written.
 */
export function readEvent(
  previous: Link,
  row: ReadableRow,
  version: Version = 'newest',
): RuntimeEvent | undefined {
  const found = findLinkFault(previous, row)
  if (found?.what === 'seq') return undefined
  if (found) throw createDamagedEventError(row.run_id, row.seq, `its ${found.what} is not what was written`)
  const event = decodeRow(row)
  const badId = findEventIdFault(event)
  if (badId) throw createDamagedEventError(row.run_id, row.seq, `its ${badId.path} is not ${badId.expected}`)
  return version === 'newest' && hasUpcaster(event) ? upcast(event) : event
}

/** The event of a row as it was recorded. Throws `LedgerDamagedError` if it cannot be read. */
export function decodeRow(row: ReadableRow): RuntimeEvent {
  try {
    return decodeEvent(row, row.decoding)
  } catch (error) {
    throw createDamagedEventError(row.run_id, row.seq, describeDecodingError(error))
  }
}

/** The message of a `SyntaxError` quotes the text that it could not parse, and errors must not contain content of events. */
function describeDecodingError(error: unknown): string {
  if (error instanceof SyntaxError) return 'its body is not JSON'
  return error instanceof Error ? error.message : 'its body cannot be opened'
}

/** The refusal to read past an event that should be there. */
export function createMissingEventError(runId: string, seq: number): LedgerDamagedError {
  return createDamagedEventError(runId, seq, 'the event is missing')
}

export function createDamagedEventError(runId: string, seq: number, what: string): LedgerDamagedError {
  return new LedgerDamagedError(
    `Run ${formatRunId(runId)} is damaged at seq ${seq}: ${what}. What follows cannot be trusted, so reading stops here. ` +
      'Run verify for the whole picture, and restore a copy.',
  )
}

/**
 * The error for a fault of JavaScript while rows were read or written: a column is empty, or holds something else than was
 * written there. `undefined` for any other error.
 */
export function toMisreadError(error: unknown, subject: string): LedgerDamagedError | undefined {
  const isFault = error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError
  if (!isFault || 'code' in error) return undefined
  return new LedgerDamagedError(
    `${subject} holds a row that cannot be read as it was written (${error.name}). Nothing was written. Run verify on it, and ` +
      'restore a copy; if it finds nothing, @tallystick/ledger is at fault: report it.',
    { cause: error },
  )
}

/** Rows that do not come in the order that was asked for: an index of the store is damaged. */
export function createOutOfOrderError(what: string): LedgerDamagedError {
  return new LedgerDamagedError(
    `An index of the ledger is damaged: ${what} come out of order. What it says cannot be trusted. ` +
      'Run verify on it, and restore a copy.',
  )
}
