import type { RuntimeEvent } from '../vocabulary/events/event.ts'
import { deepFreeze } from '../vocabulary/values/deep-freeze.ts'
import { canonicalJson } from '../vocabulary/values/json.ts'
import { storableDigests, storableText } from './append-rules.ts'

/**
 * An event as a memory ledger keeps it: deeply frozen, so that nothing can be written to the record, and without the messages
 * of a history that it carries, which are kept once by their digest. A `ConfigurationError` for what JSON cannot carry.
 *
 * An event that a caller has frozen is kept itself, with a getter that it may have: the runtime makes none, and to look for
 * one would make each append a tenth slower.
 */
export function keptEvent(event: RuntimeEvent): RuntimeEvent {
  const kept = event.type === 'history_carried' ? withoutMessages(event) : event
  return isFrozenJson(kept)
    ? kept
    : deepFreeze(JSON.parse(storableText(kept, () => nameOf(kept))) as RuntimeEvent)
}

function withoutMessages(event: RuntimeEvent & { readonly type: 'history_carried' }): RuntimeEvent {
  const { messages: _kept, ...rest } = event
  return rest as RuntimeEvent
}

/** The digests of the histories that events carry, by the number of the event; `undefined` where none carries one. */
export function carriedHistories(events: readonly RuntimeEvent[]): ReadonlyMap<number, string> | undefined {
  let digests: Map<number, string> | undefined
  for (const event of events) {
    if (event.type !== 'history_carried') continue
    digests ??= new Map()
    digests.set(event.seq, storableDigests(event.messages, () => nameOf(event)).at(-1) ?? '')
  }
  return digests
}

function nameOf({ seq, type, runId }: RuntimeEvent): string {
  return `Event ${seq} (${type}) of run ${runId}`
}

/** Whether two kept events say the same, byte for byte. */
export function isSameEvent(kept: RuntimeEvent, other: RuntimeEvent | undefined): boolean {
  return other !== undefined && (kept === other || textOf(kept) === textOf(other))
}

function textOf(event: RuntimeEvent): string {
  return canonicalJson(event)
}

/** Whether a value is deeply frozen and what JSON would read back. */
function isFrozenJson(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0)
  if (typeof value === 'object') return value === null || isFrozenObject(value)
  return typeof value === 'string' || typeof value === 'boolean'
}

function isFrozenObject(value: object): boolean {
  if (!Object.isFrozen(value)) return false
  if (Array.isArray(value)) return value.every(isFrozenJson) && !hasHoles(value)
  if (Object.getPrototypeOf(value) !== Object.prototype || Object.getOwnPropertySymbols(value).length > 0)
    return false
  const fields = value as Readonly<Record<string, unknown>>
  for (const key in fields) {
    const field = fields[key]
    // Most fields of most events are texts and numbers.
    const isPlain = typeof field === 'string' || (field !== 0 && Number.isFinite(field))
    if (!isPlain && !isFrozenJson(field)) return false
  }
  return true
}

function hasHoles(items: readonly unknown[]): boolean {
  return Object.keys(items).length !== items.length
}
