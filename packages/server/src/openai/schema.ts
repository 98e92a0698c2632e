import { reasoningEfforts } from '@tallystick/core/internal'
import type { JsonObject, ReasoningEffort } from '@tallystick/core/vocabulary'
import * as z from 'zod'
import { malformed } from '../http/problem.ts'
import {
  parseCallId,
  parseCallInput,
  type ConversationItem,
  readResultParts,
  readText,
  readUserParts,
} from './conversation.ts'

/** Fields of both kinds of request that a run follows. */
export interface GivenFields {
  /** The agent. */
  readonly model: string
  readonly stream?: boolean | null | undefined
  readonly metadata?: JsonObject | null | undefined
  readonly temperature?: number | null | undefined
  readonly top_p?: number | null | undefined
  readonly parallel_tool_calls?: boolean | null | undefined
  readonly tools?: readonly NamedTool[] | null | undefined
  readonly tool_choice?: GivenChoice | null | undefined
}

type Maybe<Value> = Value | null | undefined

/** The model settings of a run. */
export interface OpenAiSettings {
  readonly temperature?: number
  readonly topP?: number
  readonly stop?: readonly string[]
  readonly seed?: number
  readonly maxOutputTokens?: number
  readonly reasoningEffort?: ReasoningEffort
}

/** Settings as a request gives them. */
export type GivenSettings = { readonly [Name in keyof OpenAiSettings]: Maybe<OpenAiSettings[Name]> }

/** Returns `undefined` if no setting is given. */
export function readSettings(given: GivenSettings): OpenAiSettings | undefined {
  const settings = Object.fromEntries(Object.entries(given).filter(([, value]) => value != null))
  return Object.keys(settings).length > 0 ? settings : undefined
}

const why = 'the agent and its server decide that. Leave it out'

/** A field that accepts only its default: any other value would have no effect. */
function acceptOnly<const Value extends string | number | boolean>(
  ...values: readonly [Value, ...Value[]]
): z.ZodType {
  const allowed = values.map((value) => JSON.stringify(value)).join(' or ')
  return z.literal(values, { error: `can only be ${allowed} here: ${why}` }).nullish()
}

const emptyList: z.ZodType = z.array(z.never({ error: `has to be empty: ${why}` })).nullish()
const anything: z.ZodType = z.unknown().optional()

const effort: z.ZodType<ReasoningEffort> = z.enum(reasoningEfforts)
const tokens: z.ZodType<number> = z.int().positive()

/** A tool in a request. A client can only name tools of the agent: the agent decides which tools its model may call. */
export interface NamedTool {
  readonly type: string
  readonly name?: string | undefined
  readonly function?: { readonly name: string } | undefined
}

const namedTool: z.ZodType<NamedTool> = z.looseObject({
  type: z.string(),
  name: z.string().optional(),
  function: z.looseObject({ name: z.string() }).optional(),
})

export type GivenChoice = 'auto' | 'none' | 'required' | NamedTool

const toolChoice: z.ZodType<GivenChoice> = z.union([z.enum(['auto', 'none', 'required']), namedTool])

/**
 * Fields of both kinds of request without effect: hints for caches, safety and billing, and fields that accept only their
 * default.
 */
const neutralFields = {
  user: anything,
  safety_identifier: anything,
  prompt_cache_key: anything,
  prompt_cache_retention: anything,
  service_tier: acceptOnly('auto', 'default'),
  store: acceptOnly(true),
  top_logprobs: acceptOnly(0),
}

const givenFields = {
  model: z.string(),
  stream: z.boolean().nullish(),
  metadata: z.record(z.string(), z.json()).nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  tools: z.array(namedTool).nullish(),
  tool_choice: toolChoice.nullish(),
}

/** The same for Chat Completions. */
const neutralChatFields = {
  n: acceptOnly(1),
  logprobs: acceptOnly(false),
  frequency_penalty: acceptOnly(0),
  presence_penalty: acceptOnly(0),
  logit_bias: z.strictObject({}, { error: `has to be empty: ${why}` }).nullish(),
  modalities: z.tuple([z.literal('text', { error: `can only be ["text"] here: ${why}` })]).nullish(),
  response_format: z
    .strictObject({ type: z.literal('text', { error: `can only be "text" here: ${why}` }) })
    .nullish(),
}

/** The same for the Responses API. */
const neutralResponseFields = {
  instructions: acceptOnly(''),
  background: acceptOnly(false),
  truncation: acceptOnly('disabled'),
  include: emptyList,
  text: z
    .strictObject({
      format: z
        .strictObject({ type: z.literal('text', { error: `can only be "text" here: ${why}` }) })
        .nullish(),
    })
    .nullish(),
}

/** Returns a choice of tools in the words of a run. */
export function toToolChoice(
  given: GivenChoice | null | undefined,
): 'auto' | 'any' | 'none' | { readonly type: 'tool'; readonly name: string } | undefined {
  if (given == null) return undefined
  if (given === 'required') return 'any'
  return typeof given === 'string' ? given : { type: 'tool', name: readToolName(given) }
}

/** Reads the name of a tool from either API. */
export function readToolName({ type, name, function: called }: NamedTool): string {
  return name ?? called?.name ?? type
}

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

/** The part of a Chat Completions request that a server reads. */
export interface ChatRequest extends GivenFields {
  readonly messages: readonly GivenMessage[]
  readonly stream_options?: { readonly include_usage?: boolean | undefined } | null | undefined
  readonly max_tokens?: number | null | undefined
  readonly max_completion_tokens?: number | null | undefined
  readonly seed?: number | null | undefined
  readonly stop?: string | readonly string[] | null | undefined
  readonly reasoning_effort?: z.infer<typeof effort> | null | undefined
}

/** Refuses fields that would change the answer but that the server would have to ignore. */
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
export function readMessages(messages: readonly GivenMessage[]): readonly ConversationItem[] {
  return messages.flatMap((message, index) => readMessage(message, `messages.${index}`))
}

function readMessage(
  { role, content, tool_call_id, tool_calls }: GivenMessage,
  place: string,
): readonly ConversationItem[] {
  switch (role) {
    case 'user':
      return [{ kind: 'user', parts: readUserParts(content, `${place}.content`) }]
    case 'assistant': {
      const calls = (tool_calls ?? []).map(({ id, function: called }): ConversationItem => {
        if (called === undefined) throw malformed(`${place}.tool_calls has a call without a function.`)
        const input = parseCallInput(called.arguments, `${place}.tool_calls.arguments`)
        return {
          kind: 'call',
          toolCallId: parseCallId(id, `${place}.tool_calls.id`),
          name: called.name,
          input,
        }
      })
      return [{ kind: 'assistant', text: readText(content, `${place}.content`) }, ...calls]
    }
    case 'tool': {
      const toolCallId = parseCallId(tool_call_id, `${place}.tool_call_id`)
      return [{ kind: 'result', toolCallId, content: readResultParts(content, `${place}.content`) }]
    }
    default:
      throw malformed(
        `${place} has the role ${role.slice(0, 40)}. An agent has instructions of its own: send messages of the roles user, assistant and tool.`,
      )
  }
}

interface GivenItem {
  readonly type?: string | undefined
  readonly role?: string | undefined
  readonly [field: string]: unknown
}

/** The part of a Responses request that a server reads. */
export interface ResponseRequest extends GivenFields {
  readonly input: string | readonly GivenItem[]
  readonly previous_response_id?: string | null | undefined
  readonly conversation?: string | { readonly id: string } | null | undefined
  readonly max_output_tokens?: number | null | undefined
  readonly reasoning?: { readonly effort?: z.infer<typeof effort> | null | undefined } | null | undefined
}

const id = z.string().regex(/\S/, 'is empty').max(200)

/** Refuses fields that would change the answer but that the server would have to ignore. */
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
export function readInput(input: ResponseRequest['input']): readonly ConversationItem[] {
  if (typeof input === 'string') return [{ kind: 'user', parts: [{ type: 'text', text: input }] }]
  return input.flatMap((item, index) => readItem(item, `input.${index}`))
}

function readItem(item: GivenItem, place: string): readonly ConversationItem[] {
  switch (item.type ?? 'message') {
    case 'message':
      return [readMessageItem(item, place)]
    case 'function_call': {
      const toolCallId = parseCallId(item['call_id'], `${place}.call_id`)
      return [
        {
          kind: 'call',
          toolCallId,
          name: String(item['name']),
          input: parseCallInput(item['arguments'], `${place}.arguments`),
        },
      ]
    }
    case 'function_call_output': {
      const toolCallId = parseCallId(item['call_id'], `${place}.call_id`)
      return [{ kind: 'result', toolCallId, content: readResultParts(item['output'], `${place}.output`) }]
    }
    case 'mcp_approval_response':
      return [readDecision(item, place)]
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

function readMessageItem({ role, content }: GivenItem, place: string): ConversationItem {
  if (role === 'user') return { kind: 'user', parts: readUserParts(content, `${place}.content`) }
  if (role === 'assistant') return { kind: 'assistant', text: readText(content, `${place}.content`) }
  throw malformed(
    `${place} has the role ${String(role).slice(0, 40)}. An agent has instructions of its own: send messages of the roles user and assistant.`,
  )
}

function readDecision({ approval_request_id, approve, reason }: GivenItem, place: string): ConversationItem {
  if (typeof approval_request_id !== 'string' || typeof approve !== 'boolean') {
    throw malformed(`${place} has to hold approval_request_id, and approve as true or false.`)
  }
  const denial = typeof reason === 'string' ? reason : 'Denied.'
  return { kind: 'decision', approvalId: approval_request_id, approved: approve, reason: denial }
}
