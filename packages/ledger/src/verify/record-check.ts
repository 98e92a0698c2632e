import type { Message, RuntimeEvent } from '@tallystick/core'
import { computeHistoryDigests, emptyHistoryDigest } from '@tallystick/core/internal'
import { toCanonicalJson, type Json, type JsonObject } from '@tallystick/core/vocabulary'
import { decodeEvent, upcast } from '../format/body.ts'
import { digestText } from '../format/chain.ts'
import {
  createFault,
  type EventRow,
  type Fault,
  findLinkFault,
  genesis,
  type Link,
} from '../format/event-row.ts'
import { redactEvent } from '@tallystick/core/store-kit'
import { EventAudit } from './event-audit.ts'

/** A row of a run as its store has it, without its place in the store, which no hash covers. */
export interface RecordRow extends Omit<EventRow, 'pos'> {
  /** The digest of what is left of the body, as the record of its removal has it; null if nothing was removed. */
  readonly removal: string | null
}

/** What was found out about a row that is as it was written. */
export interface CheckedRow {
  /**
   * - `whole`: the event is what the row says
   * - `removed`: the content was removed, and what is left is what the removal left
   * - `sealed`: the content is encrypted, and without its key only the facts beside it were compared
   */
  readonly content: 'whole' | 'removed' | 'sealed'
}

/**
 * Checks the rows of one run, one after the other, against the chain of hashes, against the events that a reader was shown
 * for them, and those against the laws.
 */
export class RecordCheck {
  #last: Link = genesis
  readonly #laws = new EventAudit()

  /** How many rows were found sound, from the first on. */
  get rows(): number {
    return this.#last.seq
  }

  /** The first fault of the next row; what was found out about it if there is none. */
  check(row: RecordRow, shown: RuntimeEvent): CheckedRow | { readonly fault: Fault } {
    const placed = { ...row, pos: row.seq }
    const fault =
      findLinkFault(this.#last, placed) ??
      findRemovalFault(row) ??
      findEventFault(row, shown) ??
      this.#laws.check(shown)
    if (fault) return { fault }
    this.#last = placed
    return { content: findContent(row) }
  }
}

function findContent({ commitment, key_id }: RecordRow): CheckedRow['content'] {
  if (commitment !== null) return 'removed'
  return key_id === null ? 'whole' : 'sealed'
}

/** The chain covers the commitment to a removed body; the record of its removal covers what is left of it. */
function findRemovalFault({ commitment, body, removal }: RecordRow): Fault | undefined {
  if (commitment === null) {
    return removal === null ? undefined : createFault('body', 'none, since a removal is on record', 'a body')
  }
  if (removal === null) return createFault('removal', 'a removal on record', 'none')
  const found = digestText(body)
  return found === removal ? undefined : createFault('body', `what was left, ${removal}`, found)
}

/** The event of a row is the one that was shown. */
function findEventFault(row: RecordRow, shown: RuntimeEvent): Fault | undefined {
  let recorded: RuntimeEvent
  try {
    recorded = upcast(
      decodeEvent(row, { sealers: new Map(), hasKeys: false, history: () => historyOf(shown, row) }),
    )
  } catch (error) {
    return createFault(
      'body',
      'canonical JSON',
      error instanceof SyntaxError ? 'text that is not JSON' : String(error),
    )
  }
  const isOpened = recorded.removed?.kind === 'sealed'
  const [left, right] = isOpened ? [withoutRemoved(recorded), keptOf(shown)] : [recorded, shown]
  const differing = findDifferingField(left as unknown as JsonObject, right as unknown as JsonObject)
  return differing === undefined
    ? undefined
    : createFault(`${differing} of the event shown`, 'as in the row', 'another')
}

/** What the row of a sealed event keeps in the open. */
function keptOf(shown: RuntimeEvent): object {
  if (shown.removed) return withoutRemoved(shown)
  const { runId, seq, epoch, turn, toolCallId, type, v, at } = shown
  const envelope = { runId, seq, epoch, turn, type, v, at, ...(toolCallId !== undefined && { toolCallId }) }
  return { ...redactEvent(shown), ...envelope }
}

function withoutRemoved(event: RuntimeEvent): object {
  const { removed: _removed, ...rest } = event
  return rest
}

/** The row names the messages by their running digest, so those that were shown are these messages if they have it. */
function historyOf(shown: RuntimeEvent, { body }: RecordRow): readonly Message[] {
  const messages = shown.type === 'history_carried' ? shown.messages : []
  const { carried } = JSON.parse(body) as { readonly carried?: unknown }
  const digest = computeHistoryDigests(messages).at(-1) ?? emptyHistoryDigest
  if (digest !== carried) throw new Error('The messages shown are not those that the run begins with.')
  return messages
}

function findDifferingField(recorded: JsonObject, shown: JsonObject): string | undefined {
  const keys = new Set([...Object.keys(recorded), ...Object.keys(shown)])
  return [...keys].find((key) => toText(recorded[key]) !== toText(shown[key]))
}

function toText(value: Json | undefined): string {
  return value === undefined ? '' : toCanonicalJson(value)
}
