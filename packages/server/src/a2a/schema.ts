import type { JsonObject, UserPart } from '@tallystick/core/vocabulary'
import * as z from 'zod'
import { malformed } from '../http/problem.ts'

/** A call of JSON-RPC 2.0. */
export interface A2aCall {
  readonly jsonrpc: '2.0'
  readonly id: string | number
  readonly method: string
  readonly params?: unknown
}

/** Checks a call. */
export const a2aCall: z.ZodType<A2aCall> = z.looseObject({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.number()]),
  method: z.string(),
  params: z.unknown().optional(),
})

/** A part of a message: text, data or a file. */
interface A2aPart {
  readonly text?: string | undefined
  readonly raw?: string | undefined
  readonly url?: string | undefined
  readonly data?: unknown
  readonly filename?: string | undefined
  readonly mediaType?: string | undefined
}

/** A message of a client. */
export interface A2aMessage {
  readonly messageId: string
  readonly taskId?: string | undefined
  readonly contextId?: string | undefined
  readonly parts: readonly A2aPart[]
}

/** The part of a message call that a server reads. */
export interface SendParams {
  readonly message: A2aMessage
  readonly configuration?: { readonly returnImmediately?: boolean | undefined } | undefined
}

const id = z.string().regex(/^[\x21-\x7e]{1,190}$/, 'has to be 1 to 190 visible ASCII characters')

/** Checks what a client sends with a message. */
export const sendParams: z.ZodType<SendParams> = z.looseObject({
  message: z.looseObject({
    messageId: id,
    taskId: z.string().optional(),
    contextId: id.optional(),
    parts: z
      .array(
        z.looseObject({
          text: z.string().optional(),
          raw: z.base64().optional(),
          url: z.url({ protocol: /^https?$/ }).optional(),
          data: z.unknown().optional(),
          filename: z.string().optional(),
          mediaType: z.string().optional(),
        }),
      )
      .min(1),
  }),
  configuration: z.looseObject({ returnImmediately: z.boolean().optional() }).optional(),
})

/** Names a task. */
export const taskParams: z.ZodType<{ readonly id: string }> = z.looseObject({ id: z.string() })

/** Checks the parameters of a call. */
export function parseParams<Params>(schema: z.ZodType<Params>, { params }: A2aCall): Params {
  const parsed = schema.safeParse(params)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw malformed(`The params do not fit: ${issue?.path.join('.')}: ${issue?.message}.`)
}

/** Reads the text and files of a message. */
export function readUserParts({ parts }: A2aMessage): readonly UserPart[] {
  return parts.flatMap(
    ({ text, raw, url, filename, mediaType = 'application/octet-stream' }): readonly UserPart[] => {
      if (text) return [{ type: 'text', text }]
      const content = raw === undefined ? url !== undefined && { url } : { data: raw }
      if (!content) return []
      if (mediaType.startsWith('image/')) return [{ type: 'image', mediaType, ...content }]
      return [{ type: 'file', mediaType, ...content, ...(filename && { name: filename }) }]
    },
  )
}

/** An answer to a run that waits: a decision, or the result of a call. */
export type A2aAnswer =
  | {
      readonly approvalId: string
      readonly approved: boolean
      readonly reason?: string | undefined
      readonly input?: JsonObject | undefined
    }
  | { readonly toolCallId: string; readonly result: string }

const answer: z.ZodType<A2aAnswer> = z.union([
  z.strictObject({
    approvalId: z.string(),
    approved: z.boolean(),
    reason: z.string().optional(),
    input: z.record(z.string(), z.json()).optional(),
  }),
  z.strictObject({ toolCallId: z.string(), result: z.string() }),
])

/** Returns the answers of a message: one in each data part. */
export function readAnswers({ parts }: A2aMessage): readonly A2aAnswer[] {
  return parts.flatMap(({ data }) => {
    if (data === undefined) return []
    const parsed = answer.safeParse(data)
    if (parsed.success) return [parsed.data]
    throw malformed(
      'A part of data has to be { approvalId, approved, reason?, input? } or { toolCallId, result }.',
    )
  })
}
