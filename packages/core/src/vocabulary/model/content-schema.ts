import {
  count,
  exactly,
  flag,
  json,
  jsonObject,
  listOf,
  objectOf,
  optional,
  type OptionalSchema,
  type Schema,
  text,
  discriminatedBy,
  valueWhere,
  variantOf,
  wordOf,
} from '../values/schema.ts'
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

/** Names one tool call, as the runtime mints it. */
export const toolCallId: Schema<ToolCallId> = valueWhere(
  (value) => typeof value === 'string' && parseToolCallId(value) !== undefined,
  'a tool call id',
)

/** The closed lists of words, and the model's name, as content holds them. */
export const outcome: Schema<Outcome> = wordOf(outcomes)
export const stopReason: Schema<StopReason> = wordOf(stopReasons)
export const modelRef: Schema<ModelRef> = objectOf<ModelRef>({ provider: text, api: text, modelId: text })

const opaque: Schema<Opaque> = objectOf<Opaque>({ provider: text, api: text, data: json })
type Malformed = NonNullable<RequestedCall['malformed']>
const malformed: Schema<Malformed> = objectOf<Malformed>({ text, error: text })

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
  type: exactly('text'),
  text,
  citations: optional(listOf(citation)),
  opaque: optional(opaque),
})
const providerFile: Schema<ProviderFile> = objectOf<ProviderFile>({ provider: text, id: text })
const imagePart = objectOf<ImagePart>({
  type: exactly('image'),
  mediaType: text,
  data: optional(text),
  url: optional(text),
  providerFile: optional(providerFile),
  detail: optional(wordOf(imageDetails)),
})
const filePart = objectOf<FilePart>({
  type: exactly('file'),
  mediaType: text,
  name: optional(text),
  data: optional(text),
  url: optional(text),
  providerFile: optional(providerFile),
})
const reasoningPart = objectOf<ReasoningPart>({
  type: exactly('reasoning'),
  text,
  opaque: optional(opaque),
})
const executed: Schema<ProviderExecuted> = objectOf<ProviderExecuted>({
  id: text,
  name: text,
  input: optional(jsonObject),
  outcome: optional(wordOf(['success', 'failed'])),
})
const providerPart = objectOf<ProviderPart>({
  type: exactly('provider'),
  kind: text,
  opaque,
  executed: optional(executed),
  sources: optional(listOf(source)),
})

/** The fields of a call as the model wrote it. */
export const requestedFields: {
  readonly providerCallId: Schema<string>
  readonly name: Schema<string>
  readonly input: typeof jsonObject
  readonly malformed: OptionalSchema<Malformed>
  readonly opaque: OptionalSchema<Opaque>
} = {
  providerCallId: text,
  name: text,
  input: jsonObject,
  malformed: optional(malformed),
  opaque: optional(opaque),
}

/** A call as the model wrote it. */
export const requestedCall: Schema<RequestedCall> = objectOf<RequestedCall>({
  type: exactly('tool_call'),
  ...requestedFields,
})
const toolCallPart = objectOf<ToolCallPart>({ type: exactly('tool_call'), ...requestedFields, toolCallId })

type ReplyContent = TextPart | ReasoningPart | RequestedCall | ProviderPart

/** What replies, messages and results are made of. */
export const replyContent: Schema<ReplyContent> = variantOf<ReplyContent>({
  text: textPart,
  reasoning: reasoningPart,
  tool_call: requestedCall,
  provider: providerPart,
})
/** What a model writes in words. */
export const writtenContent: Schema<TextPart | ReasoningPart> = variantOf<TextPart | ReasoningPart>({
  text: textPart,
  reasoning: reasoningPart,
})
export const assistantPart: Schema<AssistantPart> = variantOf<AssistantPart>({
  text: textPart,
  reasoning: reasoningPart,
  tool_call: toolCallPart,
  provider: providerPart,
})
export const resultPart: Schema<ResultPart> = variantOf<ResultPart>({
  text: textPart,
  image: imagePart,
  file: filePart,
})
/** A part of what a user says. */
export const userPart: Schema<UserPart> = variantOf<UserPart>({
  text: textPart,
  image: imagePart,
  file: filePart,
})
/** A message of the user. */
export const userMessage: Schema<UserMessage> = objectOf<UserMessage>({
  role: exactly('user'),
  parts: listOf(userPart),
})

const assistantMessage = objectOf<AssistantMessage>({
  role: exactly('assistant'),
  parts: listOf(assistantPart),
  model: modelRef,
  stopReason,
  partial: flag,
})
const toolResult = objectOf<ToolResult>({ toolCallId, name: text, outcome, content: listOf(resultPart) })
const toolResultsMessage = objectOf<ToolResultsMessage>({
  role: exactly('tool'),
  results: listOf(toolResult),
})
/** Any message that a model may be shown. */
export const message: Schema<Message> = discriminatedBy<Message>('role', [
  userMessage,
  assistantMessage,
  toolResultsMessage,
])
