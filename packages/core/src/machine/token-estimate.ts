import type { AgentDefinition } from '../vocabulary/agent-definition.ts'
import type { Message } from '../vocabulary/content.ts'

/** Characters that one token stands for, on the safe side of what vendors' tokenizers give for English text. */
const CHARACTERS_PER_TOKEN = 3.5
/** Tokens of an image or a document of unknown size. */
const ATTACHMENT_TOKENS = 1_600
/** Tokens that a message costs beside its content. */
const MESSAGE_TOKENS = 6

/** About how many input tokens a message is worth. Used before a call; what was billed counts after it. */
export function messageTokens(message: Message): number {
  switch (message.role) {
    case 'user':
    case 'assistant':
      return MESSAGE_TOKENS + partTokens(message.parts)
    case 'tool':
      return message.results.reduce((sum, { content }) => sum + MESSAGE_TOKENS + partTokens(content), 0)
  }
}

/** About how many input tokens the instructions and the tools are worth. */
export function definitionTokens({ instructions, tools }: AgentDefinition): number {
  return textTokens(instructions) + textTokens(JSON.stringify(tools))
}

/** About how many input tokens a request of these messages has. */
export function requestTokens(definition: AgentDefinition, messages: readonly Message[]): number {
  return messages.map(messageTokens).reduce((sum, tokens) => sum + tokens, definitionTokens(definition))
}

function partTokens(parts: readonly { readonly type: string }[]): number {
  return parts.reduce((sum, part) => {
    if (part.type === 'image' || part.type === 'file') return sum + ATTACHMENT_TOKENS
    return sum + textTokens('text' in part ? String(part.text) : JSON.stringify(part))
  }, 0)
}

function textTokens(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN)
}
