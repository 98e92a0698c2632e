import Anthropic from '@anthropic-ai/sdk'
import type { Clock, ModelRequest } from '@tallystick/core'
import { Ollama } from 'ollama/browser'
import OpenAI from 'openai'
import { modelOf, type WireName } from './streams.ts'

/** Reads one whole reply and answers its text. */
export type Side = () => Promise<string>

const maxRetries = 0
const content = 'Hello'
const messages = [{ role: 'user' as const, content }]

/** The official client alone, read as an application without Tallystick would: the text of each event, put together. */
export const bare: Readonly<Record<WireName, (url: string) => Side>> = {
  anthropic: (baseURL) => {
    const client = new Anthropic({ apiKey: 'k', baseURL, maxRetries, logLevel: 'off' })
    return async () => {
      let text = ''
      const params = { model: 'm', max_tokens: 1000, messages, stream: true } as const
      for await (const event of await client.messages.create(params)) {
        if (event.type === 'content_block_delta' && event.delta.type === 'text_delta')
          text += event.delta.text
      }
      return text
    }
  },
  openai: (baseURL) => {
    const client = new OpenAI({ apiKey: 'k', baseURL, maxRetries, logLevel: 'off' })
    return async () => {
      let text = ''
      for await (const event of await client.responses.create({ model: 'm', input: content, stream: true })) {
        if (event.type === 'response.output_text.delta') text += event.delta
      }
      return text
    }
  },
  openaiChat: (baseURL) => {
    const client = new OpenAI({ apiKey: 'k', baseURL, maxRetries, logLevel: 'off' })
    return async () => {
      let text = ''
      for await (const chunk of await client.chat.completions.create({
        model: 'm',
        messages,
        stream: true,
      })) {
        text += chunk.choices[0]?.delta.content ?? ''
      }
      return text
    }
  },
  ollama: (host) => {
    const client = new Ollama({ host })
    return async () => {
      let text = ''
      for await (const line of await client.chat({ model: 'm', messages, stream: true }))
        text += line.message.content
      return text
    }
  },
}

const clock: Clock = {
  now: () => Date.now(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs)
    return () => clearTimeout(timer)
  },
}
const request: ModelRequest = {
  ...{ instructions: '', tools: [], toolChoice: { type: 'auto' }, parallelToolCalls: true },
  messages: [{ role: 'user', parts: [{ type: 'text', text: content }] }],
}

/** The adapter, read as the runtime does: each signal as it comes. */
export function adapted(wire: WireName, url: string): Side {
  const model = modelOf(wire, url)
  return () =>
    new Promise((resolve, reject) => {
      let text = ''
      model.stream(request, { clock }).subscribe({
        next: (signal) => {
          if (signal.type === 'model_text') text += signal.text
        },
        complete: () => resolve(text),
        error: reject,
      })
    })
}
