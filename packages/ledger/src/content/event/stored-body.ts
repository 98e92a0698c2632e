import { createHash } from 'node:crypto'
import { type Message, type RuntimeEvent } from '@tallystick/core'
import { storableText } from '@tallystick/core/store-kit'
import { canonicalJson, type EventOf, type Json, type JsonObject } from '@tallystick/core/vocabulary'
import { redactedPayload } from '../payload/redacted-payload.ts'
import { envelopeText, segmentEnvelopeOf, type SegmentEnvelope } from '../../record/envelope.ts'
import {
  largeBytesMin,
  externalizedPayload,
  parseReferring,
  putBack,
  referringText,
  type Referred,
} from '../payload/externalized-payload.ts'
import type { Sealer } from '../payload/encrypted-bytes.ts'
import { BodyFields } from './body-fields.ts'
import { packedText } from './packed-deltas.ts'
import { storedHistory, type StoredHistory } from '../payload/stored-history.ts'

/** A large content as a store keeps it: once, under its digest. */
export interface StoredContent {
  /** SHA-256 of `bytes`, in hex. */
  readonly digest: string
  readonly bytes: Uint8Array
}

/** What an event says, as a store keeps it. */
export interface StoredBody extends Elsewhere {
  readonly bytes: Uint8Array
}

/** What an event says, before it is laid into a row: text, unless it is sealed. */
export interface WrittenBody extends Elsewhere {
  readonly written: string | Uint8Array
}

/** What a store keeps of an event beside its body. */
interface Elsewhere {
  /** Contents that the body refers to. A store that has one already need not write it again. */
  readonly contents: readonly StoredContent[]
  /** What the run begins with, by whose name the body refers to it. A store keeps of it what it has not got yet. */
  readonly history?: StoredHistory | undefined
}

/**
 * The first byte of a body names its form: `{` for canonical JSON; `[` for canonical JSON whose large texts, or carried messages,
 * are stored elsewhere; and 1 for an encrypted body, which holds either after the part that stays readable without the key.
 */
const openBrace = 0x7b
const openBracket = 0x5b
const sealedForm = 1

const contentPlace: Uint8Array = Buffer.from('content')
/** The form, and how long the readable part is. */
const prefixBytes = 5

/** Whether a body needs nothing but its own bytes to be read. */
export function isPlain(body: Uint8Array): boolean {
  return body[0] === openBrace
}

/**
 * What an event says, as bytes: all that is not envelope, as canonical JSON; with large texts apart; sealed where a
 * sealer is given. The same event gives the same bytes. A `ConfigurationError` where JSON cannot carry it.
 */
export function storedBody(event: RuntimeEvent, sealer?: Sealer): StoredBody {
  const { written, contents, history } = writtenBody([event], sealer)
  return { bytes: bytesOf(written), contents, history }
}

/** What a body is as bytes. */
export function bytesOf(written: string | Uint8Array): Uint8Array {
  return typeof written === 'string' ? Buffer.from(written) : written
}

/** The content of a segment: of one event, or of neighbouring deltas together. */
export function writtenBody(events: readonly RuntimeEvent[], sealer?: Sealer): WrittenBody {
  const [first] = events as readonly [RuntimeEvent]
  if (events.length > 1) {
    return written(events, packedText(events, textOfBody(first, fieldsOfPacked)), { contents: none }, sealer)
  }
  if (first.type === 'history_carried' && first.messages.length > 0) return carriedBody(first, sealer)
  const { plain, contents } = withoutLarge(first, textOfBody(first, fieldsOfBody), sealer)
  return written(events, plain, { contents }, sealer)
}

const none: readonly StoredContent[] = []

function written(
  events: readonly RuntimeEvent[],
  plain: string,
  { contents, history }: Elsewhere,
  sealer: Sealer | undefined,
): WrittenBody {
  const body = sealer ? sealed(events, Buffer.from(plain), sealer) : plain
  return { written: body, contents, history }
}

function carriedBody(event: EventOf<'history_carried'>, sealer: Sealer | undefined): WrittenBody {
  const subject = subjectOf(event)
  const history = storedHistory(event.messages, { subject, sealer })
  const rest = bodyOf({ ...event, messages: [] })
  storableText(rest, subject)
  const plain = referringText(rest, { references: [], history: history.name })
  return written([event], plain, { contents: none, history }, sealer)
}

const fieldsOfBody = new BodyFields()
/** What packed deltas have alike. */
const fieldsOfPacked = new BodyFields(['text'])

/** The canonical text of a body, or of a part of it; a `ConfigurationError` where JSON cannot carry it. */
function textOfBody(event: RuntimeEvent, fields: BodyFields): string {
  try {
    return fields.textOf(event)
  } catch (error) {
    // This names the event and the place in it.
    storableText(bodyOf(event), subjectOf(event))
    throw error
  }
}

function subjectOf({ seq, type, runId }: RuntimeEvent): string {
  return `Event ${seq} (${type}) of run ${runId}`
}

/** An event without its envelope. */
function bodyOf(event: RuntimeEvent): JsonObject {
  const { runId: _run, seq: _seq, epoch: _epoch, turn: _turn, toolCallId: _call, ...rest } = event
  const { type: _type, v: _v, at: _at, ...body } = rest
  return body as unknown as JsonObject
}

function withoutLarge(
  event: RuntimeEvent,
  text: string,
  sealer: Sealer | undefined,
): { readonly plain: string; readonly contents: readonly StoredContent[] } {
  const whole = { plain: text, contents: none }
  if (text.length * 3 < largeBytesMin) return whole
  const { body: rest, large } = externalizedPayload(bodyOf(event))
  if (large.length === 0) return whole
  const contents = large.map(({ text: content }) => {
    const bytes = Buffer.from(content)
    const stored = sealer ? sealer.seal(bytes, contentPlace) : bytes
    return { digest: digestOf(stored), bytes: stored }
  })
  const references = large.map(({ path }, index) => ({ path, digest: contents[index]?.digest ?? '' }))
  return { plain: referringText(rest, { references }), contents }
}

/** SHA-256 of bytes as they are stored, in hex. */
export function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** What stays readable of a sealed body: the key that it is sealed with, and its facts. */
interface Readable {
  readonly key: string
  readonly kept: JsonObject
}

/** What stays readable of the first event is the same for all events of a segment. */
function sealed(events: readonly RuntimeEvent[], plain: Uint8Array, sealer: Sealer): Uint8Array {
  const kept = redactedPayload(events[0] as RuntimeEvent)
  const readable = Buffer.from(canonicalJson({ key: sealer.id, kept }))
  const prefix = Buffer.alloc(prefixBytes, sealedForm)
  prefix.writeUInt32BE(readable.length, 1)
  return Buffer.concat([
    prefix,
    readable,
    sealer.seal(plain, Buffer.from(envelopeText(segmentEnvelopeOf(events)))),
  ])
}

function readableOf(body: Uint8Array): { readonly readable: Readable; readonly rest: Uint8Array } {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const end = prefixBytes + bytes.readUInt32BE(1)
  const readable = JSON.parse(bytes.toString('utf8', prefixBytes, end)) as Readable
  return { readable, rest: bytes.subarray(end) }
}

/** The id of the key that a body is sealed with; `undefined` for one that is not. */
export function keyIdOf(body: Uint8Array): string | undefined {
  return body[0] === sealedForm ? readableOf(body).readable.key : undefined
}

/** A body that was decoded as far as the key reaches. */
export type DecodedBody =
  | { readonly text: string }
  /** The key is gone: what is left are the facts. */
  | { readonly kept: JsonObject }

/**
 * Opens a body; its large texts may still be stored elsewhere. Throws where the bytes are not what they were sealed
 * as, or in none of the known forms.
 */
export function decodedBody(
  envelope: SegmentEnvelope,
  body: Uint8Array,
  sealer: Sealer | undefined,
): DecodedBody {
  if (body[0] === openBrace || body[0] === openBracket) return { text: textOf(body) }
  if (body[0] !== sealedForm) throw new Error('a form that is not known')
  const { readable, rest } = readableOf(body)
  if (sealer === undefined) return { kept: readable.kept }
  return { text: textOf(sealer.open(rest, Buffer.from(envelopeText(envelope)))) }
}

/** What a decoded body refers to. */
export function referredIn(text: string): Referred {
  return text.startsWith('[') ? parseReferring(text) : { references: [] }
}

/** Where the externalized parts of bodies are stored. */
export interface ExternalizedParts {
  /** The bytes under a digest, as they are stored. */
  content(digest: string): Uint8Array | undefined
  /** The messages under the name of a history. Throws where they are not what was written. */
  history(name: string): readonly Message[]
}

/** The body as it was said. `sealer` is that of a sealed body, whose contents are sealed, too. */
export function restoredBody(
  { text }: Extract<DecodedBody, { readonly text: string }>,
  elsewhere: ExternalizedParts,
  sealer: Sealer | undefined,
): JsonObject {
  if (!text.startsWith('[')) return JSON.parse(text) as JsonObject
  const { body, references, history } = parseReferring(text)
  for (const { path, digest } of references) {
    const stored = elsewhere.content(digest)
    if (stored === undefined) throw new Error(`no content ${digest}`)
    if (digestOf(stored) !== digest) throw new Error(`the content ${digest} has changed`)
    putBack(body, path, textOf(sealer ? sealer.open(stored, contentPlace) : stored))
  }
  return history === undefined ? body : { ...body, messages: elsewhere.history(history) as unknown as Json }
}

/** Bytes of UTF-8 as text. */
export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
}
