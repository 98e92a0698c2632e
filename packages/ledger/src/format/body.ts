import type { Message, RuntimeEvent } from '@tallystick/core'
import { isJson, omitUndefined } from '@tallystick/core/internal'
import { toStorableText } from '@tallystick/core/store-kit'
import {
  toCanonicalJson,
  type EventType,
  type Json,
  type JsonObject,
  type Removed,
} from '@tallystick/core/vocabulary'
import { formatEnvelope, type RowEnvelope } from './chain.ts'
import { splitHistory, type CarriedHistory } from './history.ts'
import type { Sealer } from './keyring.ts'
import { redactEvent } from '@tallystick/core/store-kit'

/*
 * The forms of a body, each JSON of an object:
 *   what the event says, all but its envelope          most events
 *   the same without `messages`, with `carried`        the history that a run begins with, by its name in `history`
 *   {"kept":…,"sealed":…}, perhaps with "carried"      where the row has a `key_id`: what is sealed is one of the above
 *   what is left of it, with "removed"                 where the row has a `commitment`
 */

/** An event as a store keeps it, before it is linked. */
export interface EncodedEvent {
  readonly event: RuntimeEvent
  readonly envelope: RowEnvelope
  readonly body: string
  /** The messages that the run begins with, for `history`. */
  readonly history?: CarriedHistory
}

/** The row of an event, its place and its link aside. A `ConfigurationError` for what JSON cannot carry. */
export function encodeEvent(event: RuntimeEvent, sealer?: Sealer): EncodedEvent {
  const envelope = toRowEnvelope(event, sealer?.id ?? null)
  const history = findHistory(event, sealer)
  const text = history === undefined ? encodeBody(event) : encodeBodyWithHistory(event, history.name)
  if (sealer === undefined)
    return history ? { event, envelope, body: text, history } : { event, envelope, body: text }
  const body = toCanonicalJson({
    kept: redactEvent(event) as unknown as Json,
    sealed: sealer.seal(text, formatEnvelope(envelope)),
    ...(history && { carried: history.name }),
  })
  return { event, envelope, body, ...(history && { history }) }
}

/** Only the second event of a run carries what it begins with; a run with more of them keeps those as they are. */
function findHistory(event: RuntimeEvent, sealer: Sealer | undefined): CarriedHistory | undefined {
  if (event.type !== 'history_carried' || event.seq !== 2 || Object.hasOwn(event, 'carried')) return undefined
  return event.messages.length === 0 ? undefined : splitHistory(event.messages, describeEvent(event), sealer)
}

function encodeBodyWithHistory(event: RuntimeEvent, name: string): string {
  const { messages: _kept, ...rest } = withoutEnvelope(event) as JsonObject & { readonly messages?: Json }
  return toStorableText({ ...rest, carried: name }, describeEvent(event))
}

function toRowEnvelope(event: RuntimeEvent, key_id: string | null): RowEnvelope {
  const { runId: run_id, seq, type, turn, toolCallId, at, epoch, v } = event
  const attempt = findAttempt(event)
  return { run_id, seq, type, turn, tool_call_id: toolCallId ?? null, attempt, at, epoch, v, key_id }
}

/** Facts that a call may have once: start and decision of an attempt, and the result. */
function findAttempt(event: RuntimeEvent): number | null {
  if (event.type === 'tool_result') return 0
  if (event.type !== 'tool_started' && event.type !== 'approval_decided') return null
  // A decision of another run does not count: the question is asked again.
  if (event.type === 'approval_decided' && event.elsewhere) return null
  return Number.isSafeInteger(event.attempt) ? event.attempt : null
}

function withoutEnvelope(event: RuntimeEvent): JsonObject {
  const {
    runId: _run,
    seq: _seq,
    epoch: _epoch,
    turn: _turn,
    toolCallId: _call,
    type: _type,
    v: _v,
    at: _at,
    ...body
  } = event
  return body as unknown as JsonObject
}

function describeEvent({ seq, type, runId }: RuntimeEvent): string {
  return `Event ${seq} (${type}) of run ${runId}`
}

function encodeBody(event: RuntimeEvent): string {
  const body = withoutEnvelope(event)
  // Otherwise an error names the event and the place in it.
  return isJson(body) ? JSON.stringify(body) : toStorableText(body, describeEvent(event))
}

/** Everything beside its own text that a body needs to be read. */
export interface Decoding {
  /** The keys that are there, under their ids. */
  readonly sealers: ReadonlyMap<string, Sealer>
  /** Without a keyring, it is unknown whether a key still exists. */
  readonly hasKeys: boolean
  /** The messages under the name of a history. Throws if they are not there or were changed. */
  history(name: string, sealer: Sealer | undefined): readonly Message[]
}

export type BodyRow = RowEnvelope & { readonly body: string; readonly commitment: string | null }

/** A plain row needs nothing but its own text to be read. */
export function isPlain({ key_id, commitment, type }: BodyRow): boolean {
  return (key_id === null || commitment !== null) && type !== 'history_carried'
}

/** The name of the history that a row refers to, if it does. */
export function findHistoryName({ type, seq, commitment, body }: BodyRow): string | undefined {
  if (type !== 'history_carried' || seq !== 2 || commitment !== null) return undefined
  const fields = parseObject(body)
  return typeof fields['carried'] === 'string' && !Object.hasOwn(fields, 'messages')
    ? fields['carried']
    : undefined
}

/**
 * Decodes the event of a row. Content that was removed, or is sealed with a key that is not there, is marked
 * by `removed`. Throws if the body is not JSON object, cannot be opened, or refers to what is not there.
 */
export function decodeEvent(row: BodyRow, decoding: Decoding | undefined): RuntimeEvent {
  const fields = isPlain(row) ? parseObject(row.body) : decodeFields(row, decoding)
  return Object.assign(fields, toEventEnvelope(row)) as unknown as RuntimeEvent
}

function decodeFields(row: BodyRow, decoding: Decoding | undefined): Record<string, unknown> {
  const name = findHistoryName(row)
  let fields = parseObject(row.body)
  let sealer: Sealer | undefined
  if (row.key_id !== null && row.commitment === null) {
    const { kept, sealed } = fields
    if (typeof sealed !== 'string') throw new Error('its body is not sealed, and its row names a key')
    sealer = decoding?.sealers.get(row.key_id)
    const removed: Removed = { kind: decoding?.hasKeys ? 'erased' : 'sealed' }
    if (sealer === undefined) return { ...Object(kept), removed }
    fields = parseObject(sealer.open(sealed, formatEnvelope(row)))
  }
  if (name === undefined) return fields
  const { carried: _name, ...rest } = fields
  if (decoding === undefined) throw new Error('its history was not read')
  return { ...rest, messages: decoding.history(name, sealer) }
}

function parseObject(text: string): Record<string, unknown> {
  const value = JSON.parse(text) as unknown
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>
  throw new Error('its body is not a JSON object')
}

function toEventEnvelope(row: RowEnvelope): object {
  const { run_id: runId, seq, epoch, turn, tool_call_id: toolCallId, type, v, at } = row
  return toolCallId === null
    ? { runId, seq, epoch, turn, type, v, at }
    : { runId, seq, epoch, turn, toolCallId, type, v, at }
}

/** The body of an event whose content is removed: what may stay of it, and why the rest went. */
export function encodeRemains(event: RuntimeEvent, removed: Removed): string {
  const rest = redactEvent(event) as unknown as Json
  return toCanonicalJson({ ...(rest as JsonObject), removed: omitUndefined(removed) })
}

/** Brings what an event says, beside its envelope, from one version of its type to the next. Pure, and never changed. */
export type Upcaster = (body: JsonObject) => JsonObject

/** For each type, by the version that it leads away from: the one at 1 makes version 2 of version 1. */
export type Upcasters = { readonly [T in EventType]?: { readonly [fromVersion: number]: Upcaster } }

/**
 * A new version of an event type raises its `v` in core's `eventTraits` and adds one line here. Format 1 has none: every
 * type is at its first version.
 */
export const upcasters: Upcasters = {}

export function hasUpcaster({ type }: { readonly type: string }, known: Upcasters = upcasters): boolean {
  return Object.hasOwn(known, type)
}

/**
 * Returns the event in its newest version: an older one goes through the upcasters of its type, one after the other. Of the
 * envelope only `v` changes, and the stored event never does. Unknown types and versions are returned unchanged.
 */
export function upcast(event: RuntimeEvent, known: Upcasters = upcasters): RuntimeEvent {
  let current = event
  for (;;) {
    const steps = hasUpcaster(current, known) ? known[current.type] : undefined
    const step = steps?.[current.v]
    if (step === undefined) return current
    const { runId, seq, epoch, turn, toolCallId, type, at } = current
    const envelope = { runId, seq, epoch, turn, ...(toolCallId !== undefined && { toolCallId }), type, at }
    current = { ...step(withoutEnvelope(current)), ...envelope, v: current.v + 1 } as unknown as RuntimeEvent
  }
}
