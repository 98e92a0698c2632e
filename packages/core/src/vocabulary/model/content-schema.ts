import * as z from 'zod'
import type { Citation, Source } from './citation.ts'
import {
  imageDetails,
  outcomes,
  stopReasons,
  type AssistantPart,
  type ToolResultsMessage,
  type ToolResult,
  type Message,
  type AssistantMessage,
  type FilePart,
  type ImagePart,
  type ModelRef,
  type Opaque,
  type Outcome,
  type ProviderExecuted,
  type ProviderFile,
  type ProviderPart,
  type ReasoningPart,
  type RequestedCall,
  type ResultPart,
  type StopReason,
  type TextPart,
  type ToolCallPart,
  type UserMessage,
  type UserPart,
} from './content.ts'
import { parseToolCallId, type ToolCallId } from '../values/ids.ts'
import { count, json, jsonObject, objectOf, optional, text, variantOf } from '../values/schema.ts'

/** Names one tool call, as the runtime mints it. */
export const toolCallId: z.ZodType<ToolCallId> = z.custom<ToolCallId>(
  (value) => typeof value === 'string' && parseToolCallId(value) !== undefined,
  'Invalid input: expected a tool call id',
)

/** The closed lists of words, and the model's name, as content holds them. */
export const outcome: z.ZodType<Outcome> = z.enum(outcomes)
export const stopReason: z.ZodType<StopReason> = z.enum(stopReasons)
export const modelRef: z.ZodType<ModelRef> = objectOf<ModelRef>({ provider: text, api: text, modelId: text })

const opaque: z.ZodType<Opaque> = objectOf<Opaque>({ provider: text, api: text, data: json })
type Malformed = NonNullable<RequestedCall['malformed']>
const malformed: z.ZodType<Malformed> = objectOf<Malformed>({ text, error: text })

const sourceFields = { url: optional(text), title: optional(text), fileId: optional(text) }
const range = objectOf<{ readonly from: number; readonly to: number }>({ from: count, to: count })
const source = objectOf<Source>(sourceFields)
const citation = objectOf<Citation>({
  ...sourceFields,
  quote: optional(text),
  pages: optional(range),
  place: optional(range),
})
const textPart = objectOf<TextPart>({
  type: z.literal('text'),
  text,
  citations: optional(z.array(citation)),
  opaque: optional(opaque),
})
const providerFile: z.ZodType<ProviderFile> = objectOf<ProviderFile>({ provider: text, id: text })
const imagePart = objectOf<ImagePart>({
  type: z.literal('image'),
  mediaType: text,
  data: optional(text),
  url: optional(text),
  providerFile: optional(providerFile),
  detail: optional(z.enum(imageDetails)),
})
const filePart = objectOf<FilePart>({
  type: z.literal('file'),
  mediaType: text,
  name: optional(text),
  data: optional(text),
  url: optional(text),
  providerFile: optional(providerFile),
})
const reasoningPart = objectOf<ReasoningPart>({
  type: z.literal('reasoning'),
  text,
  opaque: optional(opaque),
})
const executed: z.ZodType<ProviderExecuted> = objectOf<ProviderExecuted>({
  id: text,
  name: text,
  input: optional(jsonObject),
  outcome: optional(z.enum(['success', 'failed'])),
})
const providerPart = objectOf<ProviderPart>({
  type: z.literal('provider'),
  kind: text,
  opaque,
  executed: optional(executed),
  sources: optional(z.array(source)),
})

/** The fields of a call as the model wrote it. */
export const requestedFields: {
  readonly providerCallId: z.ZodType<string>
  readonly name: z.ZodType<string>
  readonly input: typeof jsonObject
  readonly malformed: z.ZodExactOptional<typeof malformed>
  readonly opaque: z.ZodExactOptional<typeof opaque>
} = {
  providerCallId: text,
  name: text,
  input: jsonObject,
  malformed: optional(malformed),
  opaque: optional(opaque),
}

/** A call as the model wrote it. */
export const requestedCall: z.ZodType<RequestedCall> = objectOf<RequestedCall>({
  type: z.literal('tool_call'),
  ...requestedFields,
})
const toolCallPart = objectOf<ToolCallPart>({ type: z.literal('tool_call'), ...requestedFields, toolCallId })

type ReplyContent = TextPart | ReasoningPart | RequestedCall | ProviderPart

/** What replies, messages and results are made of. */
export const replyContent: z.ZodType<ReplyContent> = variantOf<ReplyContent>({
  text: textPart,
  reasoning: reasoningPart,
  tool_call: requestedCall,
  provider: providerPart,
})
/** What a model writes in words. */
export const writtenContent: z.ZodType<TextPart | ReasoningPart> = variantOf<TextPart | ReasoningPart>({
  text: textPart,
  reasoning: reasoningPart,
})
export const assistantPart: z.ZodType<AssistantPart> = variantOf<AssistantPart>({
  text: textPart,
  reasoning: reasoningPart,
  tool_call: toolCallPart,
  provider: providerPart,
})
export const resultPart: z.ZodType<ResultPart> = variantOf<ResultPart>({
  text: textPart,
  image: imagePart,
  file: filePart,
})
/** A part of what a user says. */
export const userPart: z.ZodType<UserPart> = variantOf<UserPart>({
  text: textPart,
  image: imagePart,
  file: filePart,
})
/** A message of the user. */
export const userMessage: z.ZodType<UserMessage> = objectOf<UserMessage>({
  role: z.literal('user'),
  parts: z.array(userPart),
})

const assistantMessage = objectOf<AssistantMessage>({
  role: z.literal('assistant'),
  parts: z.array(assistantPart),
  model: modelRef,
  stopReason,
  partial: z.boolean(),
})
const toolResult = objectOf<ToolResult>({ toolCallId, name: text, outcome, content: z.array(resultPart) })
const toolResultsMessage = objectOf<ToolResultsMessage>({
  role: z.literal('tool'),
  results: z.array(toolResult),
})
/** Any message that a model may be shown. */
export const message: z.ZodType<Message> = z.discriminatedUnion('role', [
  userMessage,
  assistantMessage,
  toolResultsMessage,
] as unknown as Parameters<typeof z.discriminatedUnion>[1]) as unknown as z.ZodType<Message>
