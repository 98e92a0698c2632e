import type { Model } from '@tallystick/core'
import { anthropic } from '../../src/anthropic.ts'
import { ollama } from '../../src/ollama.ts'
import { openai, openaiChat } from '../../src/openai.ts'
import { splitAt } from './bytes.ts'
import type { Answer } from './loopback.ts'
import { anthropicReadings } from './recorded/anthropic-readings.ts'
import { chatReadings } from './recorded/chat-readings.ts'
import { areRecorded, recordedBytes } from './recorded/files.ts'
import { ollamaReadings } from './recorded/ollama-readings.ts'
import { responsesReadings } from './recorded/responses-readings.ts'
import { written } from './written/all.ts'
import type { Folder, Reading, Written } from './written/reading.ts'

/** Every stream that was written by hand, and on top of them, where they are there, all that were recorded. */
export const readings: readonly Reading[] = [
  ...written,
  ...(areRecorded ? [...anthropicReadings, ...responsesReadings, ...chatReadings, ...ollamaReadings] : []),
]

/** Those of some folders. */
export function readingsIn(...folders: readonly Folder[]): readonly Reading[] {
  return readings.filter(({ folder }) => folders.includes(folder))
}

/** The one of this name; a recorded one where it was not written by hand. */
export function readingOf(folder: Folder, file: string): Reading {
  const found = readings.find((one) => one.folder === folder && one.file === file)
  if (found === undefined) throw new Error(`There is no stream ${folder}/${file}.`)
  return found
}

const isWritten = (reading: Reading): reading is Written => 'body' in reading

export function bytesOf(reading: Reading): Uint8Array {
  if (isWritten(reading)) return new TextEncoder().encode(reading.body)
  return recordedBytes(reading.file, reading.folder)
}

/** The stream as an answer over HTTP, in pieces that end at the given places. */
export function answerOf(reading: Reading, places: readonly number[] = []): Answer {
  const { status, headers, ending }: Partial<Written> = isWritten(reading) ? reading : {}
  const ofLines = reading.folder === 'ollama' && { 'content-type': 'application/x-ndjson' }
  return {
    ...(status !== undefined && { status }),
    ...(ending !== undefined && { ending }),
    headers: { ...ofLines, ...headers },
    pieces: splitAt(bytesOf(reading), places),
  }
}

const apiKey = 'k'
const chat = (baseURL: string) => openaiChat('gpt-test', { apiKey, baseURL })

/** The adapter of each wire, over the vendor's own client. */
export const modelOver: { readonly [folder in Folder]: (baseURL: string) => Model } = {
  anthropic: (baseURL) => anthropic('claude-test-1', { apiKey, baseURL }),
  'openai-responses': (baseURL) => openai('gpt-test', { apiKey, baseURL }),
  'openai-chat': chat,
  'openai-compatible': chat,
  ollama: (baseURL) => ollama('qwen-test', { baseURL, contextTokens: 4096 }),
}
