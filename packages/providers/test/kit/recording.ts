import { join } from 'node:path'
import type { Model } from '@tallystick/core'
import OpenAI from 'openai'
import { anthropic } from '../../src/anthropic.ts'
import { ollama } from '../../src/ollama.ts'
import { openaiChat } from '../../src/openai.ts'
import { chatBytes, sseBytes } from './bytes.ts'
import type { Answer } from './loopback.ts'
import * as lines from './ollama-lines.ts'
import { richChat } from './openai-streams.ts'
import { rich } from './streams.ts'
import { temporaryFolder } from '../../../../scripts/testing/temporary-folder.ts'

export const apiKey = 'sk-ant-api03-veryverysecret'

/** A file that does not exist yet, in a folder that goes with the test. */
export function newFile(): string {
  const folder = temporaryFolder()
  return join(folder, 'recording.jsonl')
}

/** Adapters, each over the official client of its wire. */
export const adapters: readonly {
  readonly name: string
  readonly rich: Uint8Array
  readonly answer: (pieces: readonly Uint8Array[], more?: Answer) => Answer
  readonly model: (baseURL: string, fetch: typeof globalThis.fetch) => Model
}[] = [
  {
    name: 'anthropic',
    rich: sseBytes(rich),
    answer: (pieces, more) => ({ pieces, headers: { 'request-id': 'req_1' }, ...more }),
    model: (baseURL, fetch) => anthropic('claude-test-1', { apiKey, baseURL, fetch }),
  },
  {
    name: 'ollama',
    rich: lines.lineBytes(lines.rich),
    answer: (pieces, more) => lines.answer(pieces, more),
    model: (baseURL, fetch) => ollama('qwen-test', { apiKey, baseURL, fetch }),
  },
  {
    name: 'openaiChat, by its client',
    rich: chatBytes(richChat),
    answer: (pieces, more) => ({ pieces, headers: { 'x-request-id': 'req_1' }, ...more }),
    model: (baseURL, fetch) =>
      openaiChat('gpt-test', { client: new OpenAI({ apiKey, baseURL, fetch, maxRetries: 0 }) }),
  },
]

/** No server listens there: a played request goes nowhere. */
export const nowhere = 'http://127.0.0.1:9'
