import * as z from 'zod'
import { malformed } from '../http/problem.ts'
import { resultParts, textIn, userParts } from './content.ts'
import {
  effort,
  givenFields,
  neutralFields,
  neutralChatFields,
  tokens,
  type GivenFields,
} from './request-fields.ts'
import { callIdOf, callInput, type ConversationItem } from './conversation.ts'

interface GivenMessage {
  readonly role: string
  readonly content?: unknown
  readonly tool_call_id?: unknown
  readonly tool_calls?:
    | readonly {
        readonly id?: unknown
        readonly function?: { readonly name: string; readonly arguments?: unknown } | undefined
      }[]
    | null
    | undefined
}

/** What a client of Chat Completions sends, as far as a server reads it. */
export interface ChatRequest extends GivenFields {
  readonly messages: readonly GivenMessage[]
  readonly stream_options?: { readonly include_usage?: boolean | undefined } | null | undefined
  readonly max_tokens?: number | null | undefined
  readonly max_completion_tokens?: number | null | undefined
  readonly seed?: number | null | undefined
  readonly stop?: string | readonly string[] | null | undefined
  readonly reasoning_effort?: z.infer<typeof effort> | null | undefined
}

/** Checks such a request. It refuses fields that would change the answer but that the server would have to ignore. */
export const chatRequest: z.ZodType<ChatRequest> = z.strictObject({
  ...givenFields,
  ...neutralFields,
  ...neutralChatFields,
  messages: z
    .array(
      z.looseObject({
        role: z.string(),
        content: z.unknown().optional(),
        tool_call_id: z.unknown().optional(),
        tool_calls: z
          .array(
            z.looseObject({
              id: z.unknown().optional(),
              function: z.looseObject({ name: z.string(), arguments: z.unknown().optional() }).optional(),
            }),
          )
          .nullish(),
      }),
    )
    .min(1),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
  max_tokens: tokens.nullish(),
  max_completion_tokens: tokens.nullish(),
  seed: z.int().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  reasoning_effort: effort.nullish(),
})

/** Reads the messages of a conversation. */
export function itemsInMessages(messages: readonly GivenMessage[]): readonly ConversationItem[] {
  return messages.flatMap((message, index) => chatItems(message, `messages.${index}`))
}

function chatItems(
  { role, content, tool_call_id, tool_calls }: GivenMessage,
  place: string,
): readonly ConversationItem[] {
  switch (role) {
    case 'user':
      return [{ kind: 'user', parts: userParts(content, `${place}.content`) }]
    case 'assistant': {
      const calls = (tool_calls ?? []).map(({ id, function: called }): ConversationItem => {
        if (called === undefined) throw malformed(`${place}.tool_calls has a call of no function.`)
        const input = callInput(called.arguments, `${place}.tool_calls.arguments`)
        return { kind: 'call', toolCallId: callIdOf(id, `${place}.tool_calls.id`), name: called.name, input }
      })
      return [{ kind: 'assistant', text: textIn(content, `${place}.content`) }, ...calls]
    }
    case 'tool': {
      const toolCallId = callIdOf(tool_call_id, `${place}.tool_call_id`)
      return [{ kind: 'result', toolCallId, content: resultParts(content, `${place}.content`) }]
    }
    default:
      throw malformed(
        `${place} has the role ${role.slice(0, 40)}. An agent has instructions of its own: send messages of the roles user, assistant and tool.`,
      )
  }
}
