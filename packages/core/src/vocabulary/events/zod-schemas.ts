import type * as z from 'zod'
import { resultPart, userPart } from '../model/content-schema.ts'
import type { ResultPart, UserPart } from '../model/content.ts'
import { zod } from '../zod/zod.ts'
import { outsideCommand, type OutsideCommand } from './command.ts'
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

/** What may lie in a run's inbox. */
export const outsideCommandSchema: z.ZodType<OutsideCommand> = zod().lazy(outsideCommand)

/** A part of a tool result, and of what a user says. */
export const resultPartSchema: z.ZodType<ResultPart> = zod().lazy(resultPart)
export const userPartSchema: z.ZodType<UserPart> = zod().lazy(userPart)
