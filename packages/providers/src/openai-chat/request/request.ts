import { type Message, type ModelRequest } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/kit'
import { type JsonObject } from '@tallystick/core/vocabulary'
import { callContext } from '../../openai/request/call-context.ts'
import { samplingFields } from '../../openai/request/sampling.ts'
import { fitSchema, isAnswerSchema, noAnswerSchema } from '../../openai/request/strict-schema.ts'
import { schemaInWords, withAnswerSchema } from '../../shared/request/answer-instructions.ts'
import { memoized } from '../../shared/request/memoized.ts'
import { withProviderOptions } from '../../shared/request/provider-options.ts'
import { anyWord, toolNames, warnOfNames } from '../../shared/request/tool-names.ts'
import type { WireRequest } from '../client/wire.ts'
import { chatCallIds } from './call-ids.ts'
import { messagesOf } from './history.ts'
import { type RenderedMessage, renderMessage } from './rendered-message.ts'
import type { ReplyContext } from './reply-context.ts'
import type { RenderSettings, RequestSettings } from './request-settings.ts'
import { toolFields } from './tools.ts'

/** A request, ready to be sent. */
export interface RenderedRequest {
  readonly body: WireRequest
  /** For the reply. */
  readonly context: ReplyContext
}

/** What the rendering of one request depends on. */
interface Rendering extends Pick<RenderSettings, 'warn'> {
  /** Fields of how to write that the model takes none of. */
  readonly refused?: readonly string[]
}

/** Renders requests of one model. */
export type RequestRenderer = (request: ModelRequest, rendering: Rendering) => RenderedRequest

const maxToolNameLength = 64
const heldFields = ['model', 'messages', 'stream', 'stream_options', 'tools', 'n']

/**
 * A renderer that keeps what it made of each message, so that a turn costs what it adds. The same request gives the
 * same body, whatever was rendered before.
 */
export function requestRenderer(given: RequestSettings): RequestRenderer {
  const rendered = memoized((message: Message) => renderMessage(message, given.provider))
  return (request, { warn, refused = [] }) =>
    renderRequest(request, request.messages.map(rendered), { ...given, warn }, refused)
}

function renderRequest(
  request: ModelRequest,
  renderedMessages: readonly RenderedMessage[],
  settings: RenderSettings,
  refused: readonly string[],
): RenderedRequest {
  const { quirks } = settings
  const calls = renderedMessages.flatMap((rendered) => (rendered.role === 'assistant' ? rendered.calls : []))
  const names = toolNames(
    [...request.tools, ...calls].map((named) => named.name),
    { maxLength: maxToolNameLength, ...(quirks.toolNames === 'any' && { pattern: anyWord }) },
  )
  warnOfNames(request, names, settings.warn)
  const history = messagesOf(renderedMessages, { ids: chatCallIds(calls, quirks.callIds), names, quirks })
  const maxTokens = Math.min(request.maxOutputTokens ?? Infinity, settings.maxOutputTokens ?? Infinity)
  const answer = answerFields(request, settings)
  const instructions = answer.instructions.toWellFormed()
  const body: WireRequest = {
    model: settings.modelId,
    messages:
      instructions.trim() === '' ? history : [{ role: quirks.systemRole, content: instructions }, ...history],
    stream: true,
    ...(quirks.streamUsage && { stream_options: { include_usage: true } }),
    ...toolFields(request, names, settings, refused),
    ...(answer.format && { response_format: answer.format }),
    ...(Number.isFinite(maxTokens) && { [quirks.maxTokensField]: maxTokens }),
    ...optionFields(settings),
    ...settings.extraBody,
    ...samplingFields(
      request.modelSettings ?? {},
      { ...quirks, effortField: 'reasoning_effort' },
      { ...settings, refused },
    ),
  }
  return {
    body: withProviderOptions(body, request, { ...settings, held: heldFields }),
    context: {
      ...callContext(request, names, { ...settings, strictTools: settings.strictTools && quirks.strict }),
      finishReasonOptional: quirks.finishReasonOptional,
    },
  }
}

/** Fields that the options of the model say word for word. */
function optionFields(settings: RenderSettings): object {
  return omitUndefined({
    reasoning_effort: settings.reasoningEffort,
    verbosity: settings.verbosity,
    prompt_cache_key: settings.promptCacheKey,
    service_tier: settings.serviceTier,
    metadata: settings.metadata,
  })
}

/** How the model is asked for an answer of a schema: by the server's own way, in the instructions, or by both. */
interface AnswerFields {
  readonly instructions: string
  readonly format?: JsonObject
}

function answerFields(
  { outputSchema, instructions }: ModelRequest,
  { quirks, warn }: RenderSettings,
): AnswerFields {
  if (outputSchema === undefined) return { instructions }
  const withSchema = withAnswerSchema(instructions, outputSchema)
  if (quirks.structuredOutput === 'none') {
    warn({ what: 'output_schema', message: schemaInWords('the server cannot hold an answer to a schema') })
    return { instructions: withSchema }
  }
  if (!isAnswerSchema(outputSchema)) {
    warn({ what: 'output_schema', message: noAnswerSchema })
    return { instructions: withSchema }
  }
  if (quirks.structuredOutput === 'json_object') {
    warn({
      what: 'output_schema',
      message: schemaInWords('the server holds an answer to JSON, and to no schema'),
    })
    return { instructions: withSchema, format: { type: 'json_object' } }
  }
  const fitted = fitSchema(outputSchema)
  const { schema, strict } = quirks.strict
    ? fitted
    : { schema: { type: 'object', ...outputSchema }, strict: false }
  const notes = quirks.strict ? fitted.notes : []
  for (const note of notes) warn({ what: 'output_schema', message: `The schema of the answer: ${note}.` })
  const described = { name: 'answer', schema, ...(quirks.strict && { strict }) }
  return { instructions, format: { type: 'json_schema', json_schema: described } }
}
