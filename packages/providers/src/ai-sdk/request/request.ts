import { isJsonObject } from '@tallystick/core/kit'
import type { ModelRequest } from '@tallystick/core'
import type { JsonObject, ModelSettings } from '@tallystick/core/vocabulary'
import { withAnswerSchema } from '../../shared/request/answer-instructions.ts'
import { callIds } from '../../shared/request/call-ids.ts'
import { withOptions } from '../../shared/request/provider-options.ts'
import { type ToolNameRules, toolNames, type ToolNames } from '../../shared/request/tool-names.ts'
import type { WireCall } from '../client/wire.ts'
import { callsOf, promptOf, type Reader } from './history.ts'
import { toolsOf } from './tools.ts'

// What every provider's vendor takes.
const maxIdentifierLength = 64

/** What vendors take for the names of tools, where that is more, or other. */
const nameRules: ReadonlyMap<string, ToolNameRules> = new Map([
  ['anthropic', { maxLength: 128 }],
  ['google', { maxLength: 128, pattern: /^[a-zA-Z_][a-zA-Z0-9_.:-]*$/ }],
])

/** The settings of a call that come from the options. */
export interface CallSettings {
  readonly maxOutputTokens?: number | undefined
  /** Settings of the AI SDK for this call, such as `temperature`, `seed`, `reasoning`, `stopSequences`. */
  readonly settings?: JsonObject | undefined
  readonly providerOptions?: JsonObject | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Whether the schema of an answer also goes into the instructions. */
  readonly answerInWords?: boolean
}

/** A call, ready to be made. */
export interface RenderedCall {
  readonly call: WireCall
  /** For the reply: the names that its calls go by. */
  readonly names: ToolNames
}

/** A request as the AI SDK asks its models. Every call reports raw events too: these are the signs of life. */
export function callOf(
  request: ModelRequest,
  reader: Reader,
  given: CallSettings,
): Omit<RenderedCall, 'abortSignal'> {
  const calls = callsOf(request.messages, reader)
  const names = toolNames(
    [...request.tools, ...calls].map((named) => named.name),
    nameRules.get(reader.provider) ?? { maxLength: maxIdentifierLength },
  )
  const binding = { ids: callIds(calls, maxIdentifierLength), names }
  const limits = [request.maxOutputTokens, given.maxOutputTokens].filter((limit) => limit !== undefined)
  const options = mergedOptions(request, given)
  const { outputSchema } = request
  const instructions =
    outputSchema && given.answerInWords
      ? withAnswerSchema(request.instructions, outputSchema)
      : request.instructions
  const call = {
    ...given.settings,
    ...samplingOf(request.modelSettings ?? {}),
    prompt: promptOf(instructions, request.messages, binding, reader),
    ...(limits.length > 0 && { maxOutputTokens: Math.min(...limits) }),
    ...(outputSchema && { responseFormat: { type: 'json', schema: outputSchema } }),
    ...toolsOf(request, [...new Set(calls.map(({ name }) => name))], names),
    ...(Object.keys(options).length > 0 && { providerOptions: options }),
    ...(given.headers && { headers: { ...given.headers } }),
    includeRawChunks: true,
  }
  return { call: call as unknown as WireCall, names }
}

function samplingOf({ temperature, topP, stop, seed, reasoningEffort }: ModelSettings): object {
  return {
    ...(reasoningEffort !== undefined && { reasoning: reasoningEffort }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(stop && stop.length > 0 && { stopSequences: [...stop] }),
    ...(seed !== undefined && { seed }),
  }
}

/** The AI SDK has no common word for one call at a time, so that it is said in those of the providers that know one. */
function mergedOptions(
  { parallelToolCalls, tools, modelSettings }: ModelRequest,
  given: CallSettings,
): JsonObject {
  const providerOptions = withOptions(given.providerOptions ?? {}, { ...modelSettings?.providerOptions })
  if (parallelToolCalls || tools.length === 0) return providerOptions
  const alone: JsonObject = {
    anthropic: { disableParallelToolUse: true },
    openai: { parallelToolCalls: false },
  }
  const merged = { ...alone, ...providerOptions }
  return Object.fromEntries(
    Object.entries(merged).map(([name, options]) => {
      const ours = alone[name]
      return [name, isJsonObject(ours) && isJsonObject(options) ? { ...ours, ...options } : options]
    }),
  )
}
