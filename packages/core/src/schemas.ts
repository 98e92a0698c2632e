// Events, commands and message parts as schemas of zod, which other schemas may be made of. Nothing else of core loads zod.
import * as z from 'zod'
import { type OutsideCommand, outsideCommand } from './events/commands.ts'
import { type ResultPart, resultPart, type UserPart } from './events/content.ts'
import { eventBodies, type EventBodies, type EventType } from './events/event.ts'
import { json, jsonObject, type Kind, type Schema } from './values/schema.ts'

const built = new Map<Schema, z.ZodType>()

/** A schema of zod that takes the same values. */
function toZod<T>(schema: Schema<T>): z.ZodType<T> {
  const known = built.get(schema) ?? (schema.kind ? toZodKind(schema.kind) : toZodCheck(schema))
  built.set(schema, known)
  return known as z.ZodType<T>
}

function toZodCheck(schema: Schema): z.ZodType {
  const expected =
    schema === json ? 'a JSON value' : schema === jsonObject ? 'a JSON object' : 'another value'
  return z.custom((value) => schema(value) === undefined, `Invalid input: expected ${expected}`)
}

function toZodKind(kind: Kind): z.ZodType {
  switch (kind.is) {
    case 'text':
      return z.string()
    case 'flag':
      return z.boolean()
    case 'number':
      return boundNumber(kind.whole ? z.int() : z.number(), kind.min, kind.max)
    case 'one_of':
      return z.literal(kind.values)
    case 'list':
      return z.array(toZod(kind.item))
    case 'record':
      return z.record(z.string(), toZod(kind.item))
    case 'object': {
      const fields = Object.entries(kind.fields).map(([name, schema]) => {
        const field = toZod(schema.present ?? schema)
        return [name, schema.isOptional ? z.exactOptional(field) : field] as const
      })
      return z.looseObject(Object.fromEntries(fields))
    }
    case 'choice': {
      const options = kind.schemas.map(toZod)
      return kind.field === undefined
        ? z.union(options)
        : z.discriminatedUnion(kind.field, options as unknown as Parameters<typeof z.discriminatedUnion>[1])
    }
  }
}

function boundNumber(number: z.ZodNumber, min: number, max: number): z.ZodType {
  const atLeast = min > -Infinity ? number.min(min) : number
  return max < Infinity ? atLeast.max(max) : atLeast
}

/**
 * The schema of each event's body, to check events from outside. Unknown fields are kept. A schema is built when it is
 * first read.
 *
 * @example eventSchemas.tool_result.parse(JSON.parse(line))
 */
export const eventSchemas: { readonly [T in EventType]: z.ZodType<EventBodies[T]> } = Object.defineProperties(
  {} as typeof eventSchemas,
  Object.fromEntries(
    Object.entries<Schema>(eventBodies).map(([type, schema]) => [
      type,
      { get: () => toZod(schema), enumerable: true },
    ]),
  ),
)

/** The entries of a run's inbox. */
export const outsideCommandSchema: z.ZodType<OutsideCommand> = z.lazy(() => toZod(outsideCommand))

/** A part of a tool result, and of what a user says. */
export const resultPartSchema: z.ZodType<ResultPart> = z.lazy(() => toZod(resultPart))
export const userPartSchema: z.ZodType<UserPart> = z.lazy(() => toZod(resultPart))
