import type { ToolDefinition } from '@tallystick/core/vocabulary'
import { type Message } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/kit'
import {
  removedText,
  type AgentDefinition,
  type AssistantPart,
  type ModelFailure,
  type ModelSettings,
  type ResultPart,
  type UserMessage,
  type UserPart,
} from '@tallystick/core/vocabulary'

/** A text that is gone. What was empty said nothing. */
export function redactedText(text: string): string {
  return text === '' ? '' : removedText
}

/** What a user said or a tool answered: as many parts, all of them text. */
export function redactedParts(
  parts: readonly (UserPart | ResultPart)[],
): readonly { readonly type: 'text'; readonly text: string }[] {
  return parts.map((part) => ({
    type: 'text',
    text: part.type === 'text' ? redactedText(part.text) : removedText,
  }))
}

/**
 * What a model said: texts are gone, and so are reasoning and blocks of the vendor, whose proofs hold for the whole
 * only. Calls stay, under their names and ids, so that each still has its result.
 */
export function redactedReply(parts: readonly AssistantPart[]): readonly AssistantPart[] {
  const redacted = parts.flatMap((part): AssistantPart[] => {
    if (part.type === 'text') return [{ type: 'text', text: redactedText(part.text) }]
    if (part.type !== 'tool_call') return []
    const { type, toolCallId, providerCallId, name } = part
    return [{ type, toolCallId, providerCallId, name, input: {} }]
  })
  return redacted.length > 0 || parts.length === 0 ? redacted : [{ type: 'text', text: removedText }]
}

/** What a user said. */
export function redactedUserMessage({ role, parts }: UserMessage): UserMessage {
  return { role, parts: redactedParts(parts) }
}

/** A message of the history, with the calls and results that it pairs. */
export function redactedMessage(message: Message): Message {
  if (message.role === 'user') return redactedUserMessage(message)
  if (message.role === 'tool') {
    const results = message.results.map(({ toolCallId, name, outcome, content }) => {
      return { toolCallId, name, outcome, content: redactedParts(content) }
    })
    return { role: 'tool', results }
  }
  const { role, parts, model, stopReason, partial } = message
  return { role, parts: redactedReply(parts), model, stopReason, partial }
}

/** What an agent tells its model. Names, models, prices and the digest of the whole stay. */
export function redactedDefinition(definition: AgentDefinition): AgentDefinition {
  const { model, instructions, tools, parallelToolCalls, digest, output, summarizer } = definition
  const { maxOutputTokens, modelSettings, onRefusal, price, fallbacks, guardrails, handoffs } = definition
  return {
    model,
    instructions: redactedText(instructions),
    parallelToolCalls,
    digest,
    tools: tools.map(redactedTool),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(modelSettings && { modelSettings: redactedSettings(modelSettings) }),
    ...(onRefusal && { onRefusal }),
    ...(price && { price }),
    ...(fallbacks && { fallbacks }),
    ...(guardrails && { guardrails }),
    ...(handoffs && { handoffs }),
    ...(output && { output: { ...numbersOf(output), schema: {} } }),
    ...(summarizer && { summarizer: { ...summarizer, instructions: removedText } }),
  }
}

/** The numbers of an object, by whatever name a version of the event has for them. */
function numbersOf<Value extends object>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => typeof field === 'number')) as Value
}

/** How models write, without what may say something: the texts that end a reply, and the options of one provider. */
export function redactedSettings(settings: ModelSettings): ModelSettings {
  const { temperature, topP, seed, maxOutputTokens, reasoningEffort } = settings
  return omitUndefined({ temperature, topP, seed, maxOutputTokens, reasoningEffort })
}

/** How a model call failed, without the vendor's words. */
export function redactedFailure(failure: ModelFailure): ModelFailure {
  return { ...failure, message: redactedText(failure.message) }
}

/** A tool of which only the name is left. */
export function redactedTool({ name }: ToolDefinition): ToolDefinition {
  return { name, description: removedText, inputSchema: { type: 'object' } }
}
