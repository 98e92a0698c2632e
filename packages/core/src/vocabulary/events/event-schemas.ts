import type * as z from 'zod'
import type { EventBodies, EventType } from './event.ts'
import { eventBodies } from './event-schema.ts'

/**
 * What each event carries beside its envelope, as schemas for what comes from outside. Fields that are not named are kept.
 * A schema is built when its field is first read.
 */
export const eventSchemas: { readonly [T in EventType]: z.ZodType<EventBodies[T]> } = Object.defineProperties(
  {} as typeof eventSchemas,
  Object.fromEntries(
    Object.entries(eventBodies).map(([type, get]) => [type, { get, enumerable: true }] as const),
  ),
)
