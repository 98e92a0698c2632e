import { sseBytes } from './bytes.ts'
import type { Answer } from './loopback.ts'
import { answer as ollamaAnswer, done as ollamaDone, lineBytes, text as ollamaText } from './ollama-lines.ts'
import { completed, counted, created, message } from './openai-streams.ts'
import { done, start, stop, textBlock } from './streams.ts'

const chatChunk = (delta: object, finish_reason: string | null = null) => ({
  id: 'chatcmpl_1',
  model: 'm',
  object: 'chat.completion.chunk',
  created: 1,
  choices: [{ index: 0, delta, finish_reason }],
})

/** How each wire says a text. */
export const says: {
  readonly [wire in 'anthropic' | 'responses' | 'chat' | 'ollama']: (text: string) => Answer
} = {
  anthropic: (text: string): Answer => ({
    pieces: [sseBytes([start(), ...textBlock(0, text), done('end_turn'), stop])],
  }),
  responses: (text: string): Answer => ({
    pieces: [sseBytes(counted(created(), message(0, text), completed()))],
  }),
  chat: (text: string): Answer => ({
    pieces: [
      [chatChunk({ role: 'assistant', content: text }), chatChunk({}, 'stop')]
        .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
        .join('') + 'data: [DONE]\n\n',
    ],
  }),
  ollama: (text: string): Answer => ollamaAnswer([lineBytes([ollamaText(text), ollamaDone()])]),
}
