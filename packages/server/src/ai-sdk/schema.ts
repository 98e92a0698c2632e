import * as z from 'zod'
import { digestOf, type UserPart } from '@tallystick/core/vocabulary'
import { busyDeliveries, type BusyDelivery } from '../conversation/say.ts'
import { malformed } from '../http/problem.ts'
import type { NamedDecision } from '../runs/commands.ts'
import type { RunProtocol } from '../stream/protocol.ts'
import { uiMessageTable, type UiMessageChunk } from './map.ts'

/** The AI SDK's UI message stream, version 1. */
export const uiMessageProtocol: RunProtocol<UiMessageChunk> = {
  newTable: () => uiMessageTable,
  format: (chunk) => `data: ${JSON.stringify(chunk)}\n\n`,
  ending: 'data: [DONE]\n\n',
}

/** The header by which the AI SDK knows its stream. */
export const uiMessageHeaders: Readonly<Record<string, string>> = { 'x-vercel-ai-ui-message-stream': 'v1' }

/** The fields of a chat message that the server reads. */
export interface SentMessage {
  readonly id: string
  readonly role: string
  readonly parts: readonly UiPart[]
}

/** A part of it. Fields of other parts are not read. */
interface UiPart {
  readonly type: string
  readonly text?: string | undefined
  readonly state?: string | undefined
  readonly mediaType?: string | undefined
  readonly filename?: string | undefined
  readonly url?: string | undefined
  readonly approval?:
    | { readonly id: string; readonly approved?: boolean | undefined; readonly reason?: string | undefined }
    | undefined
}

/** The body that `useChat` sends. */
export interface ChatBody {
  /** The id of the chat: the session of its runs. */
  readonly id: string
  readonly messages: readonly SentMessage[]
  readonly trigger?: 'submit-message' | 'regenerate-message' | undefined
  /** The message that is written again, or replaced, or that decides about a call. Its id was sent before. */
  readonly messageId?: string | null | undefined
  /** If a run is under way, the model reads the message at its next turn (`steer`) or after its answer (`queue`). */
  readonly whenBusy?: BusyDelivery | undefined
}

const part: z.ZodType<UiPart> = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  state: z.string().optional(),
  mediaType: z.string().optional(),
  filename: z.string().optional(),
  url: z.string().optional(),
  approval: z
    .looseObject({ id: z.string(), approved: z.boolean().optional(), reason: z.string().optional() })
    .optional(),
})

/** Checks such a body. A client may send further fields of its own. */
export const chatBody: z.ZodType<ChatBody> = z.looseObject({
  id: z.string().regex(/\S/, 'is empty').max(200),
  messages: z
    .array(z.looseObject({ id: z.string().max(200), role: z.string(), parts: z.array(part) }))
    .min(1),
  trigger: z.enum(['submit-message', 'regenerate-message']).optional(),
  messageId: z.string().nullish(),
  whenBusy: z.enum(busyDeliveries).optional(),
})

/**
 * Returns the key under which the last message takes effect once: a page that repeats a request sends the same id.
 * `undefined` for a message that is written again or replaced, since its id was sent before.
 */
export function toMessageKey({ id, messages, trigger, messageId }: ChatBody): string | undefined {
  const last = messages.at(-1)?.id ?? ''
  const isFirst = trigger !== 'regenerate-message' && (messageId ?? undefined) === undefined
  return isFirst && last !== '' ? `chat:${digestOf(['message of chat', id, last])}` : undefined
}

/** Returns what a user says in a message of the chat. */
export function readInput({ parts }: SentMessage): readonly UserPart[] {
  const input = parts.flatMap((each): readonly UserPart[] => {
    if (each.type === 'text' && each.text) return [{ type: 'text', text: each.text }]
    return each.type === 'file' ? [readFilePart(each)] : []
  })
  if (input.length > 0) return input
  throw malformed('The last message has neither a text nor a file. Send one of them.')
}

function readFilePart({ mediaType = '', filename, url = '' }: UiPart): UserPart {
  const [, data] = /^data:[^,]*;base64,([A-Za-z0-9+/=]*)$/.exec(url) ?? []
  if (data === undefined && !/^https?:\/\//.test(url)) {
    throw malformed('A file of the last message has no URL of http, https or data. Give it one.')
  }
  const content = data === undefined ? { mediaType, url } : { mediaType, data }
  if (mediaType.startsWith('image/')) return { type: 'image', ...content }
  return { type: 'file', ...content, ...(filename !== undefined && { name: filename }) }
}

/** Returns the decisions in a message of the chat that the run has not answered yet. */
export function readDecisions({ parts }: SentMessage): readonly NamedDecision[] {
  return parts.flatMap(({ state, approval }) =>
    state === 'approval-responded' && approval?.approved !== undefined
      ? [{ approvalId: approval.id, approved: approval.approved, reason: approval.reason ?? 'Denied.' }]
      : [],
  )
}
