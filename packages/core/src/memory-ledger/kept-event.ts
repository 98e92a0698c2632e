import type { RuntimeEvent } from '../vocabulary/events/event.ts'
import { deepFreeze } from '../vocabulary/values/deep-freeze.ts'
import { canonicalJson, type Json } from '../vocabulary/values/json.ts'
import { storableDigests, storableText } from './append-rules.ts'

/** An event as a memory ledger keeps it: deeply frozen, so that no caller who holds it can change the record. */
export interface KeptEvent {
  readonly event: RuntimeEvent
  /** The digest of the history that it carries, where it carries one: the event is kept without its messages. */
  readonly history?: string
}

/** An event to keep; a `ConfigurationError` for what JSON cannot carry. */
export function keptEvent(event: RuntimeEvent): KeptEvent {
  const subject = (): string => `Event ${event.seq} (${event.type}) of run ${event.runId}`
  if (event.type !== 'history_carried') return { event: frozenAsJson(event, subject) }
  const { messages, ...rest } = event
  const history = storableDigests(messages, subject).at(-1) ?? ''
  return { event: frozenAsJson(rest as RuntimeEvent, subject), history }
}

/** Whether two kept events say the same, byte for byte. */
export function isSameEvent(kept: KeptEvent, other: KeptEvent | undefined): boolean {
  if (other === undefined || kept.history !== other.history) return false
  return kept.event === other.event || textOf(kept) === textOf(other)
}

function textOf({ event }: KeptEvent): string {
  return canonicalJson(event as unknown as Json)
}

/** The value itself where it is frozen JSON, as the events of the runtime are; else a frozen copy, as JSON reads it back. */
function frozenAsJson<Value extends object>(value: Value, subject: () => string): Value {
  return isFrozenJson(value) ? value : deepFreeze(JSON.parse(storableText(value, subject)) as Value)
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
  return Object.keys(fields).every((key) => isFrozenJson(fields[key]))
}

function hasHoles(items: readonly unknown[]): boolean {
  return Object.keys(items).length !== items.length
}
