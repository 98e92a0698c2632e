import type { Usage } from '@tallystick/core'
import type { Citation, FailureClass, StopReason } from '@tallystick/core/vocabulary'
import type { Loose } from '../loose.ts'

/** Which wire a stream is of, and for Chat Completions whether OpenAI's own server speaks. */
export type Folder = 'anthropic' | 'openai-responses' | 'openai-chat' | 'openai-compatible' | 'ollama'

/** What a person reads in a stream, written down by hand, not from what an adapter made of it. */
export interface Expected {
  /** The id of the reply; absent where the stream gives none. */
  readonly id?: string
  readonly served?: string
  /** Each part: its kind, and how its text begins and ends, or all of it where that is short. */
  readonly parts: readonly (readonly [kind: string, length?: number, begins?: string, ends?: string])[]
  readonly calls: readonly (readonly [id: string, name: string, input: object])[]
  /** Absent where the stream never says. */
  readonly usage?: Usage
  /** Tokens of the conversation at the end of the reply, where several prompts are billed. */
  readonly context?: number
  readonly stop?: readonly [StopReason, raw?: string]
  readonly failure?: readonly [FailureClass, retryable: boolean]
  /** Words that the failure has to hold. */
  readonly failureWords?: string
  /** Milliseconds for which the failure asks to wait. */
  readonly retryAfterMs?: number
  /** What parts carry for the vendor, by their places, as far as it is listed. */
  readonly carried?: Readonly<Record<number, Loose>>
  /** Calls that the vendor ran itself, in order. */
  readonly executed?: readonly Loose[]
  /** What texts cite, by the places of their parts. */
  readonly citations?: Readonly<Record<number, readonly Citation[]>>
  /** Texts of calls whose input cannot be read, by the ids of the calls. */
  readonly malformed?: Readonly<Record<string, string>>
}

/** A stream, and what a person reads in it. */
export interface Reading extends Expected {
  readonly folder: Folder
  readonly file: string
}

/** A stream that was written by hand: the answer as it goes over HTTP. */
export interface Written extends Reading {
  readonly body: string
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** `break`: the connection is reset after the last byte. */
  readonly ending?: 'end' | 'break'
}

/** What is given of a written stream beside its body. */
export type Given = Partial<Expected> & Pick<Written, 'status' | 'headers' | 'ending'>

/** A part whose text is this, whole. */
export const said = (kind: 'text' | 'reasoning', text: string): [string, number, string] => [
  kind,
  text.length,
  text,
]

/** A body that ends within the words, in the middle of an event. */
export function cutWithin(body: string, words: string): string {
  const place = body.indexOf(words)
  if (place < 0) throw new Error(`The stream does not hold ${words}.`)
  return body.slice(0, place + Math.ceil(words.length / 2))
}
