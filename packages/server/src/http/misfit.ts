import { nearestNames } from '@tallystick/core/kit'
import * as z from 'zod'

/** Names that other libraries and services give to our fields, where no likeness of letters leads there. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ...['prompt', 'message', 'messages', 'text', 'content', 'query', 'question'].map(to('input')),
  ...['assistant', 'assistantId', 'workflow'].map(to('agent')),
  ...['thread', 'threadId', 'thread_id', 'conversation', 'conversationId', 'chatId'].map(to('sessionId')),
  ...['user', 'userId', 'resourceId'].map(to('subject')),
  ...['output', 'value'].map(to('result')),
  ...['callId', 'tool_call_id'].map(to('toolCallId')),
])

function to(field: string): (name: string) => readonly [name: string, field: string] {
  return (name) => [name, field]
}

/** Says why a body does not fit its schema: that a field is unknown or missing, or which value does not fit. */
export function misfit(schema: z.ZodType, body: unknown, { issues: [issue] }: z.ZodError): string {
  const place = issue?.path.join('.') ?? ''
  const what = strayField(schema, body, place) ?? `${place === '' ? 'the body' : place}: ${issue?.message}.`
  return `The body does not fit: ${what}`
}

/** A field that the schema does not have explains most of what else is wrong. */
function strayField(schema: z.ZodType, body: unknown, place: string): string | undefined {
  const fields = fieldsOf(schema)
  if (fields === undefined || typeof body !== 'object' || body === null || Array.isArray(body))
    return undefined
  const list = `Fields are ${fields.join(', ')}.`
  const unknown = Object.keys(body).find((name) => !fields.includes(name))
  if (unknown !== undefined) {
    const meant = fieldMeant(unknown, fields)
    const hint = meant === undefined ? '' : `Did you mean ${meant}? `
    return `${unknown.slice(0, 80)} is no field. ${hint}${list}`
  }
  return fields.includes(place) && !Object.hasOwn(body, place) ? `${place} is missing. ${list}` : undefined
}

function fieldMeant(name: string, fields: readonly string[]): string | undefined {
  const other = otherNames.get(name)
  return other !== undefined && fields.includes(other) ? other : nearestNames(name, fields, 1)[0]
}

/** The fields of an object that takes no others, or of any that a union holds; `undefined` for other schemas. */
function fieldsOf(schema: z.ZodType): readonly string[] | undefined {
  if (schema instanceof z.ZodUnion) {
    const each = schema.options.map((option) => fieldsOf(option as z.ZodType))
    return each.every((fields) => fields !== undefined) ? [...new Set(each.flat())] : undefined
  }
  if (schema instanceof z.ZodPipe) return fieldsOf(schema.in as z.ZodType)
  if (!(schema instanceof z.ZodObject) || !(schema.def.catchall instanceof z.ZodNever)) return undefined
  return Object.keys(schema.shape)
}
