import * as z from 'zod'
import { malformed } from '../http/problem.ts'
import { resultParts, textIn, userParts } from './content.ts'
import {
  effort,
  givenFields,
  neutralFields,
  neutralResponseFields,
  tokens,
  type GivenFields,
} from './request-fields.ts'
import { callIdOf, callInput, type ConversationItem } from './conversation.ts'

interface GivenItem {
  readonly type?: string | undefined
  readonly role?: string | undefined
  readonly [field: string]: unknown
}

/** What a client of the Responses API sends, as far as a server reads it. */
export interface ResponseRequest extends GivenFields {
  readonly input: string | readonly GivenItem[]
  readonly previous_response_id?: string | null | undefined
  readonly conversation?: string | { readonly id: string } | null | undefined
  readonly max_output_tokens?: number | null | undefined
  readonly reasoning?: { readonly effort?: z.infer<typeof effort> | null | undefined } | null | undefined
}

const id = z.string().regex(/\S/, 'is empty').max(200)

/** Checks such a request. It refuses fields that would change the answer but that the server would have to ignore. */
export const responseRequest: z.ZodType<ResponseRequest> = z.strictObject({
  ...givenFields,
  ...neutralFields,
  ...neutralResponseFields,
  input: z.union([
    z.string().min(1),
    z.array(z.looseObject({ type: z.string().optional(), role: z.string().optional() })).min(1),
  ]),
  previous_response_id: z.string().nullish(),
  conversation: z.union([id, z.strictObject({ id })]).nullish(),
  stream_options: z.looseObject({}).nullish(),
  max_output_tokens: tokens.nullish(),
  reasoning: z.strictObject({ effort: effort.nullish(), summary: z.unknown().optional() }).nullish(),
})

/** Reads the input of a response. */
export function itemsInInput(input: ResponseRequest['input']): readonly ConversationItem[] {
  if (typeof input === 'string') return [{ kind: 'user', parts: [{ type: 'text', text: input }] }]
  return input.flatMap((item, index) => responseItems(item, `input.${index}`))
}

function responseItems(item: GivenItem, place: string): readonly ConversationItem[] {
  switch (item.type ?? 'message') {
    case 'message':
      return [message(item, place)]
    case 'function_call': {
      const toolCallId = callIdOf(item['call_id'], `${place}.call_id`)
      return [
        {
          kind: 'call',
          toolCallId,
          name: String(item['name']),
          input: callInput(item['arguments'], `${place}.arguments`),
        },
      ]
    }
    case 'function_call_output': {
      const toolCallId = callIdOf(item['call_id'], `${place}.call_id`)
      return [{ kind: 'result', toolCallId, content: resultParts(item['output'], `${place}.output`) }]
    }
    case 'mcp_approval_response':
      return [decision(item, place)]
    // Clients send back what a response held.
    case 'reasoning':
    case 'mcp_approval_request':
      return []
    default:
      throw malformed(
        `${place} has the type ${String(item.type).slice(0, 40)}, which an agent does not take.`,
      )
  }
}

function message({ role, content }: GivenItem, place: string): ConversationItem {
  if (role === 'user') return { kind: 'user', parts: userParts(content, `${place}.content`) }
  if (role === 'assistant') return { kind: 'assistant', text: textIn(content, `${place}.content`) }
  throw malformed(
    `${place} has the role ${String(role).slice(0, 40)}. An agent has instructions of its own: send messages of the roles user and assistant.`,
  )
}

function decision({ approval_request_id, approve, reason }: GivenItem, place: string): ConversationItem {
  if (typeof approval_request_id !== 'string' || typeof approve !== 'boolean') {
    throw malformed(`${place} has to hold approval_request_id, and approve as true or false.`)
  }
  const denial = typeof reason === 'string' ? reason : 'Denied.'
  return { kind: 'decision', approvalId: approval_request_id, approved: approve, reason: denial }
}
