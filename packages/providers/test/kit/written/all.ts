import { anthropicEndings } from './anthropic-endings.ts'
import { anthropicLines } from './anthropic-lines.ts'
import { anthropicReplies } from './anthropic-replies.ts'
import { anthropicServerTools } from './anthropic-server-tools.ts'
import { chatReplies } from './chat-replies.ts'
import { compatibleReplies } from './compatible-replies.ts'
import { gatewayReplies } from './gateway-replies.ts'
import { ollamaReplies } from './ollama-replies.ts'
import type { Written } from './reading.ts'
import { responsesEndings } from './responses-endings.ts'
import { responsesItems } from './responses-items.ts'
import { responsesReplies } from './responses-replies.ts'

/** Every stream that was written by hand, one a trouble. */
export const written: readonly Written[] = [
  ...anthropicReplies,
  ...anthropicLines,
  ...anthropicServerTools,
  ...anthropicEndings,
  ...responsesReplies,
  ...responsesItems,
  ...responsesEndings,
  ...chatReplies,
  ...compatibleReplies,
  ...gatewayReplies,
  ...ollamaReplies,
]
