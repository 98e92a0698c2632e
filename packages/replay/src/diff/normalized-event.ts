import { type RuntimeEvent } from '@tallystick/core'
import { runIdOfCall, type AgentDefinition, type EventType, type Json } from '@tallystick/core/vocabulary'

/** Events that say how something went, and nothing that a run of the same task would have to say again. */
const silent: ReadonlySet<EventType> = new Set<EventType>(['assistant_started', 'usage_updated'])

/**
 * Returns whether an event matters to a comparison. A take-over by another process does only if it brings another
 * definition.
 */
export function isSignificant(event: RuntimeEvent): boolean {
  if (event.type === 'run_resumed') return event.definition !== undefined
  return !silent.has(event.type)
}

/** What depends on the run, on the hour, on what is counted, or on how others call what they do. */
const incidental: ReadonlySet<string> = new Set([
  'cause',
  'inboxKey',
  'draining',
  'places',
  'runId',
  'seq',
  'epoch',
  'at',
  'parent',
  'sessionId',
  'sessionPlace',
  'durationMs',
  'expiresAt',
  'deadlineAt',
  'retryAt',
  'idempotencyKey',
  'receipt',
  'child',
  'reused',
  'costUsd',
  'usage',
  'contextTokens',
  'tokensBefore',
  'tokensAfter',
])
/** The same, at any depth of an event. */
const incidentalAnywhere: ReadonlySet<string> = new Set([
  'digest',
  'requestDigest',
  'inputDigest',
  'price',
  'providerMessageId',
  'providerCallId',
  'requestId',
  'opaque',
  'raw',
  'recorded',
])
/** What models, tools and their makers wrote: whatever is in it counts. */
const verbatim: ReadonlySet<string> = new Set(['input', 'inputSchema', 'output', 'schema', 'data'])

/** What an event says, as another run of the same task may say it, too: calls go by their places. */
export function normalizedEvent(event: RuntimeEvent): Json {
  if (event.type === 'run_resumed') return normalizedTakeOver(event.definition)
  return withoutKeys(event as unknown as Json, (key) => incidental.has(key) || incidentalAnywhere.has(key))
}

/** What a take-over says: the definition that is in force from there on. */
export function normalizedTakeOver(definition: AgentDefinition | undefined): Json {
  return withoutKeys({ definition } as unknown as Json, (key) => incidentalAnywhere.has(key))
}

function withoutKeys(value: Json, leavesOut: (key: string) => boolean): Json {
  if (typeof value === 'string') return runIdOfCall(value) === undefined ? value : placeOf(value)
  if (typeof value !== 'object' || value === null) return value
  const within = (item: Json): Json => withoutKeys(item, (key) => incidentalAnywhere.has(key))
  if (Array.isArray(value)) return value.map(within)
  const kept = Object.entries(value).filter(([key]) => !leavesOut(key))
  return Object.fromEntries(kept.map(([key, item]) => [key, verbatim.has(key) ? item : within(item)]))
}

/** Turn, attempt and place of a call, without the run. */
function placeOf(toolCallId: string): string {
  return `call ${toolCallId.split('_').slice(2).join('_')}`
}
