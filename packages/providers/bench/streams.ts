import { anthropicWire, ollamaWire } from '../test/kit/contract-wires.ts'
import { chatWire, responsesWire } from '../test/kit/openai-contract-wires.ts'

const wires = { anthropic: anthropicWire, openai: responsesWire, openaiChat: chatWire, ollama: ollamaWire }

/** The adapters that are measured, by what makes their models. */
export type WireName = keyof typeof wires
export const wireNames: readonly WireName[] = Object.keys(wires) as WireName[]

/** Where each wire asks. */
export const paths: Readonly<Record<string, WireName>> = {
  '/v1/messages': 'anthropic',
  '/responses': 'openai',
  '/chat/completions': 'openaiChat',
  '/api/chat': 'ollama',
}

export const deltasPerReply = 20_000
/** The words of the reply, one a delta: about as long as tokens are. */
export const words: readonly string[] = Array.from({ length: deltasPerReply }, (_, n) => `w${n % 997} `)

/** A model of the adapter itself. */
export function modelOf(wire: WireName, url: string): ReturnType<typeof anthropicWire.model> {
  return wires[wire].model(url)
}

/** The body of a long reply, in the pieces that a network gives. */
export function piecesOf(wire: WireName, length: number): { contentType: string; pieces: Buffer[] } {
  const { reply, contentType } = wires[wire]
  const usage = { inputTokens: 10, outputTokens: deltasPerReply }
  const body = Buffer.from(reply({ text: words, stop: 'end', usage }).events.join(''))
  const pieces = Array.from({ length: Math.ceil(body.length / length) }, (_, n) =>
    body.subarray(n * length, (n + 1) * length),
  )
  return { contentType, pieces }
}
