import type { ModelRequest } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import type { Warn } from '../shared/options.ts'
import {
  anyWord,
  bindCalls,
  describeSchemaMove,
  type ToolNames,
  withAnswerSchema,
  withProviderOptions,
} from '../shared/request.ts'
import { api, nineAlphanumeric, toMessages, type WireRequest } from './chat-messages.ts'
import type { OpenAIChatOptions, OpenAICustomTool, OpenAIWarning, WholeQuirks } from './options.ts'
import { createCallContext, type CallContext, toSamplingFields, pickChoice } from './request.ts'
import { fitAnswer, isAnswerSchema, toOfferedChoice, toOfferedTool } from './tools.ts'

/** The tools, and whether they may be called. Without tools these servers take no word about them. */
function toToolFields(
  request: ModelRequest,
  names: ToolNames,
  settings: RenderSettings,
  refused: readonly string[],
): object {
  const { quirks, warn } = settings
  const { tools, toolChoice, parallelToolCalls } = request
  if (tools.length === 0) return {}
  if (quirks.toolChoice === 'none' && toolChoice.type !== 'auto') {
    // To offer none is the one way to forbid them all that every server obeys.
    if (toolChoice.type === 'none') return {}
    const message = 'The server obeys no choice of tools, so the model was free to call any or none.'
    warn({ what: 'tool_choice', message })
  }
  if (!parallelToolCalls && !quirks.parallelToolCalls) {
    const message = 'The server has no way to ask for one call at a time, so it may make several.'
    warn({ what: 'parallel_tool_calls', message })
  }
  const wanted = toOfferedChoice(toolChoice, names, settings)
  const choice =
    quirks.toolChoice === 'none'
      ? undefined
      : pickChoice(
          typeof wanted === 'object' ? { type: wanted.type, [wanted.type]: { name: wanted.name } } : wanted,
          refused,
          warn,
        )
  return {
    tools: tools.map((tool): JsonObject => {
      const { type, fields, strict, more } = toOfferedTool(tool, names, {
        ...settings,
        knowsStrict: quirks.strict,
      })
      return { type, [type]: { ...fields, ...(strict && { strict }), ...more } }
    }),
    ...(choice !== undefined && { tool_choice: choice }),
    ...(!parallelToolCalls && quirks.parallelToolCalls && { parallel_tool_calls: false }),
  }
}

const heldFields = ['model', 'messages', 'stream', 'stream_options', 'tools', 'n']

/** Renders a request, without the fields of how to write that the model is known to refuse. */
export function renderRequest(
  request: ModelRequest,
  settings: RenderSettings,
  refused: readonly string[] = [],
): { readonly body: WireRequest; readonly context: ReplyContext } {
  const { quirks, provider, warn } = settings
  const binding = bindCalls(request, {
    provider,
    api,
    ...(quirks.toolNames === 'any' && { pattern: anyWord }),
    ...(quirks.callIds === 'nine_alphanumeric' && { idRule: nineAlphanumeric }),
    warn,
  })
  const { names } = binding
  const history = toMessages(request.messages, { provider, binding, quirks })
  const maxTokens = Math.min(request.maxOutputTokens ?? Infinity, settings.maxOutputTokens ?? Infinity)
  const answer = toAnswerFields(request, settings)
  const instructions = answer.instructions.toWellFormed()
  const body: WireRequest = {
    model: settings.modelId,
    messages:
      instructions.trim() === '' ? history : [{ role: quirks.systemRole, content: instructions }, ...history],
    stream: true,
    ...(quirks.streamUsage && { stream_options: { include_usage: true } }),
    ...toToolFields(request, names, settings, refused),
    ...(answer.format && { response_format: answer.format }),
    ...(Number.isFinite(maxTokens) && { [quirks.maxTokensField]: maxTokens }),
    ...omitUndefined({
      reasoning_effort: settings.reasoningEffort,
      verbosity: settings.verbosity,
      prompt_cache_key: settings.promptCacheKey,
      service_tier: settings.serviceTier,
      metadata: settings.metadata,
    }),
    ...settings.extraBody,
    ...toSamplingFields(
      request.modelSettings ?? {},
      { ...quirks, effortField: 'reasoning_effort' },
      { ...settings, refused },
    ),
  }
  return {
    body: withProviderOptions(body, request, { ...settings, held: heldFields }),
    context: {
      ...createCallContext(request, names, {
        ...settings,
        strictTools: settings.strictTools && quirks.strict,
      }),
      finishReasonOptional: quirks.finishReasonOptional,
    },
  }
}

/** Asks for an answer that fits a schema: in the server's own way, in the instructions, or by both. */
function toAnswerFields(
  { outputSchema, instructions }: ModelRequest,
  { quirks, warn }: RenderSettings,
): { readonly instructions: string; readonly format?: JsonObject } {
  if (outputSchema === undefined) return { instructions }
  const withSchema = withAnswerSchema(instructions, outputSchema)
  if (quirks.structuredOutput === 'none') {
    warn({
      what: 'output_schema',
      message: describeSchemaMove('the server cannot hold an answer to a schema'),
    })
    return { instructions: withSchema }
  }
  if (quirks.structuredOutput === 'json_object' && isAnswerSchema(outputSchema)) {
    const message = describeSchemaMove('the server holds an answer to JSON, and to no schema')
    warn({ what: 'output_schema', message })
    return { instructions: withSchema, format: { type: 'json_object' } }
  }
  const fitted = fitAnswer(outputSchema, quirks.strict, warn)
  if (fitted === undefined) return { instructions: withSchema }
  const { schema, strict } = fitted
  const described = { name: 'answer', schema, ...(quirks.strict && { strict }) }
  return { instructions, format: { type: 'json_schema', json_schema: described } }
}

/** The options of a model, as requests need them. */
export interface RenderSettings extends Pick<
  OpenAIChatOptions,
  | 'extraBody'
  | 'maxOutputTokens'
  | 'metadata'
  | 'promptCacheKey'
  | 'reasoningEffort'
  | 'serviceTier'
  | 'verbosity'
> {
  readonly modelId: string
  readonly provider: string
  readonly quirks: WholeQuirks
  readonly strictTools: boolean
  readonly customTools: Readonly<Record<string, OpenAICustomTool>>
  readonly toolFields: Readonly<Record<string, JsonObject>>
  /** Reports what the wire cannot express of this request. */
  readonly warn: Warn<OpenAIWarning>
}

/** The parts of the request that reading a reply needs. */
export interface ReplyContext extends CallContext {
  /** A stream with content that ends properly, but without a finish reason, is complete. */
  readonly finishReasonOptional: boolean
}
