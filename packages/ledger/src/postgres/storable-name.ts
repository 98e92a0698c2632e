import { ConfigurationError, sessionPlaceOf, type RuntimeEvent } from '@tallystick/core'

/** Whether Postgres can hold a text as it is: it knows no NUL, and half a surrogate pair would become another text. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** Refuses ids that would be stored as other ids, or not at all. Throws a `ConfigurationError`. */
export function requireStorableNames(runId: string, events: readonly RuntimeEvent[]): void {
  const session = sessionPlaceOf(events)?.sessionId ?? ''
  const names = [runId, session, ...events.flatMap(({ type, toolCallId }) => [type, toolCallId ?? ''])]
  if (names.every(isStorable)) return
  throw new ConfigurationError(
    'An append holds an id or a type with a NUL or half a surrogate pair, which Postgres cannot keep as it is. Nothing ' +
      'was written, since it could be taken for another id. Use plain ids, such as UUIDs.',
  )
}
