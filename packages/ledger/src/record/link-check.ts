import { type RuntimeEvent } from '@tallystick/core'
import { onceKeyOf } from '@tallystick/core/store-kit'
import { parseToolCallId } from '@tallystick/core/vocabulary'
import { commitmentText, genesisHash, hexOf, isDigest, linkText } from './chain.ts'
import { maxEventsOfRow } from './envelope.ts'
import { isRunId, quotedId } from './stored-ids.ts'
import { segmentedCommitment } from './segments/segment-commitments.ts'
import { isSegmented, type StoredRow } from './stored-row.ts'

/** What is wrong at one place of a ledger. Digests, numbers and names, never what an event says. */
export interface Fault {
  /** The column or fact that is wrong. */
  readonly what: string
  readonly expected: string
  readonly found: string
}

/** Where a run's chain has got to. */
export type Link = Pick<StoredRow, 'seq' | 'pos' | 'epoch' | 'hash'>

/** The link before the first event. */
export const genesis: Link = { seq: 0, pos: 0, epoch: 1, hash: genesisHash }

/**
 * The first fault of a stored event, given the link before it; `undefined` where the event is as it was written.
 * The fact that may be recorded once is projected from the event, and so is checked by `contentFault`.
 */
export function linkFault(previous: Link, stored: StoredRow): Fault | undefined {
  const misplaced = placeFault(previous, stored)
  if (misplaced) return misplaced
  const { payload, removal } = stored
  if (payload === undefined && removal === undefined) return fault('payload', 'a payload', 'none')
  return (
    typeFault(stored) ??
    (isSegmented(stored)
      ? segmentedFault(previous, stored)
      : ((payload && digestFault('payload', commitmentText(payload.salt, payload.body), stored.bodyCommit)) ??
        digestFault('hash', linkText(previous.hash, stored, stored.bodyCommit), stored.hash))) ??
    orderFault(previous, stored) ??
    idFault(stored)
  )
}

/**
 * The link of a row of segments covers the commitment to each of them. Where some were taken away their commitments are in
 * the payload, so that of such a row it is never gone.
 */
function segmentedFault({ hash }: Link, stored: StoredRow): Fault | undefined {
  const { payload, bodyCommit, onceKey } = stored
  if (payload === undefined) return fault('payload', 'a payload', 'none')
  if (bodyCommit.length > 0) return fault('body_commit', 'nothing', hexOf(bodyCommit))
  if (onceKey !== undefined) return fault('once_key', 'none', onceKey)
  const commitment = segmentedCommitment(payload)
  if (commitment === undefined) return fault('payload', 'a body with segments', 'another')
  return digestFault('hash', linkText(hash, stored, commitment), stored.hash)
}

function placeFault(previous: Link, { firstSeq, seq }: StoredRow): Fault | undefined {
  const first = firstSeq ?? seq
  if (first !== previous.seq + 1) return fault('seq', previous.seq + 1, first)
  if (firstSeq === undefined) return undefined
  const events = seq - firstSeq + 1
  // A reader makes as many events of a row as it says.
  if (events > 1 && events <= maxEventsOfRow) return undefined
  return fault('first_seq', `2 to ${maxEventsOfRow} events in a row`, events)
}

/** Damaged bytes may be read as another type than their column has, even in tables that refuse to store one. */
function typeFault(stored: StoredRow): Fault | undefined {
  const { pos, epoch, turn, v, at, runId, type, toolCallId, onceKey } = stored
  return (
    notWhole('pos', pos) ??
    notWhole('epoch', epoch) ??
    notWhole('turn', turn) ??
    notWhole('v', v) ??
    notWhole('at', at) ??
    bytesFaultOf(stored) ??
    notText('runId', runId) ??
    notText('type', type) ??
    (toolCallId === undefined ? undefined : notText('toolCallId', toolCallId)) ??
    (onceKey === undefined ? undefined : notText('onceKey', onceKey))
  )
}

function notWhole(what: string, value: unknown): Fault | undefined {
  return Number.isSafeInteger(value) ? undefined : fault(what, 'a whole number', `a ${typeof value}`)
}

function notText(what: string, value: unknown): Fault | undefined {
  return typeof value === 'string' ? undefined : fault(what, 'a text', `a ${typeof value}`)
}

function bytesFaultOf({ bodyCommit, hash, payload }: StoredRow): Fault | undefined {
  return (
    notBytes('body_commit', bodyCommit) ??
    notBytes('hash', hash) ??
    (payload && (notBytes('salt', payload.salt) ?? notBytes('body', payload.body)))
  )
}

function notBytes(what: string, value: unknown): Fault | undefined {
  return value instanceof Uint8Array ? undefined : fault(what, 'bytes', `a ${typeof value}`)
}

/** Checked last: an id that was changed is found by the chain, and what is left was written so. */
function idFault({ runId, toolCallId }: StoredRow): Fault | undefined {
  if (!isRunId(runId)) return fault('run_id', 'a run id', quotedId(runId))
  if (toolCallId === undefined || parseToolCallId(toolCallId) !== undefined) return undefined
  return fault('tool_call_id', 'a tool call id', quotedId(toolCallId))
}

function orderFault(previous: Link, stored: StoredRow): Fault | undefined {
  if (stored.epoch < previous.epoch) return fault('epoch', `${previous.epoch} or more`, stored.epoch)
  if (stored.pos <= previous.pos) return fault('pos', `more than ${previous.pos}`, stored.pos)
  return undefined
}

/** Checks the columns of a row that repeat fields of its event. Segments are repeated nowhere. */
export function contentFault(stored: StoredRow, event: RuntimeEvent): Fault | undefined {
  if (isSegmented(stored)) return undefined
  const onceKey = onceKeyOf(event)
  return onceKey === stored.onceKey
    ? undefined
    : fault('once_key', onceKey ?? 'none', stored.onceKey ?? 'none')
}

function digestFault(what: string, expected: string, found: Uint8Array): Fault | undefined {
  if (isDigest(expected, found)) return undefined
  return fault(what, hexOf(Buffer.from(expected, 'latin1')), hexOf(found))
}

/** A fault, with numbers and digests as text. */
export function fault(what: string, expected: string | number, found: string | number): Fault {
  return { what, expected: String(expected), found: String(found) }
}
