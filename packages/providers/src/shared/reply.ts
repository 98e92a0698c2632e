import type { ProviderError, Usage } from '@tallystick/core'
import { isJsonObject, parsedFault, readJson } from '@tallystick/core/internal'
import type { ModelSignal, RequestedCall } from '@tallystick/core/vocabulary'
import type { StreamEnding } from './body.ts'
import { isCount } from './json.ts'

/** Reads the events of one reply. */
export interface ReplyReader<Event = unknown> {
  /** Returns the signals that follow from one event. Throws a `ProviderError` for a stream that cannot be believed. */
  read(event: Event): Iterable<ModelSignal>
  /**
   * Called when the stream is over without a terminal event. Returns the last signals where the reply is whole by then,
   * else `undefined`. Before a break only a finish reason proves that; a clean end proves it for servers that are known
   * to give no reason. A wire whose replies end only with a terminal event has no such function.
   */
  readonly end?: (ending: StreamEnding) => readonly ModelSignal[] | undefined
  /** The reply is whole; what follows does not matter. */
  readonly finished: boolean
  /** Set where the reply says that it failed. */
  readonly failure?: ProviderError | undefined
}

/** What a reader asks of what it remembers of a reply. */
interface ReadReply {
  readonly finished?: boolean
  readonly failure?: ProviderError | undefined
}

/**
 * Reads a reply into the state that remembers it. A class, since V8 would keep a hidden class of its own for each object literal with
 * a getter, and with it the whole reply, until the next full collection.
 */
export class RememberingReader<Reply extends ReadReply, Event = unknown> implements ReplyReader<Event> {
  readonly #reply: Reply
  readonly #read: (reply: Reply, event: Event) => Iterable<ModelSignal>

  constructor(reply: Reply, read: (reply: Reply, event: Event) => Iterable<ModelSignal>) {
    this.#reply = reply
    this.#read = read
  }

  /** Reads one event, or several that a server sent as one list. */
  read(given: Event | readonly Event[]): Iterable<ModelSignal> {
    return Array.isArray(given)
      ? this.#readEach(given as readonly Event[])
      : this.#read(this.#reply, given as Event)
  }

  /** What the events before a faulty one say counts. */
  *#readEach(events: readonly Event[]): Generator<ModelSignal, void> {
    for (const event of events) {
      if (this.finished || this.failure !== undefined) return
      yield* this.#read(this.#reply, event)
    }
  }

  get finished(): boolean {
    return this.#reply.finished ?? false
  }

  get failure(): ProviderError | undefined {
    return this.#reply.failure
  }
}

/** The input of a call as it was understood. */
export type CallInput = Pick<RequestedCall, 'input' | 'malformed'>

/** Reads a call's arguments, once they are whole. No arguments at all mean an empty object. */
export function readCallInput(text: string): CallInput {
  if (text.trim() === '') return { input: {} }
  try {
    const input = readJson(text)
    if (isJsonObject(input)) return { input }
    return notAnObject(text)
  } catch (error) {
    return { input: {}, malformed: { text, error: (error as Error).message } }
  }
}

/** The input of a call that its service sent as JSON, not as text. */
export function readGivenInput(given: unknown): CallInput {
  if (given === undefined || given === null) return { input: {} }
  if (typeof given === 'string') return readCallInput(given)
  const fault = parsedFault(given)
  if (fault !== undefined) return { input: {}, malformed: { text: shownText(given), error: fault } }
  return isJsonObject(given) ? { input: given } : notAnObject(JSON.stringify(given))
}

/** As far as it can be written: a value may be nested too deep for that. */
function shownText(given: unknown): string {
  try {
    return JSON.stringify(given)
  } catch {
    return ''
  }
}

/** Whether arguments say nothing: some servers write null, or an empty list, for a tool without parameters. */
export function saysNothing(text: string): boolean {
  return ['', 'null', '[]'].includes(text.trim())
}

/** An input that no server can take for another, in the place of one that is no JSON: the model sees what it wrote. */
export function unreadInput(text: string): { readonly INVALID_JSON: string } {
  return { INVALID_JSON: text }
}

/** The same as text. */
export function inObject(text: string): string {
  return JSON.stringify(unreadInput(text))
}

/** The input of a call whose arguments are JSON, but no object. */
function notAnObject(text: string): CallInput {
  return { input: {}, malformed: { text, error: 'The input is valid JSON, but not an object.' } }
}

/** What a wire says, field by field. */
type Counts = { readonly [field in keyof Usage]-?: number | undefined }

/**
 * Counts as a `Usage`, in which the parts of a total are in it. Some services count reasoning beside the output (xAI), and
 * some the cache beside the prompt: their `total` shows it, or a part that is larger than its whole. What was not said
 * stays unknown.
 */
export function coherentUsage(given: Counts, total?: number): Usage {
  const counts = soundCounts(given)
  const { inputTokens, outputTokens, reasoningTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = counts
  const beside = (parts: number, whole: number): boolean => {
    if (parts > whole) return true
    return total !== undefined && parts > 0 && total === (inputTokens ?? 0) + (outputTokens ?? 0) + parts
  }
  const cached = cacheReadTokens + cacheWriteTokens
  const reasonedBeside = outputTokens !== undefined && beside(reasoningTokens, outputTokens)
  const cachedBeside = inputTokens !== undefined && !reasonedBeside && beside(cached, inputTokens)
  const mended: Counts = {
    ...counts,
    ...(reasonedBeside && { outputTokens: outputTokens + reasoningTokens }),
    ...(inputTokens !== undefined &&
      (cachedBeside || cached > inputTokens) && { inputTokens: inputTokens + cached }),
  }
  return soundCounts(mended) as Usage
}

/** What is a count: some services write -1, or no number, for what they do not know. */
function soundCounts(counts: Counts): Counts {
  const sound = Object.entries(counts).filter(([, count]) => count !== undefined && isCount(count))
  return Object.fromEntries(sound) as unknown as Counts
}

/** What is said of a citation or a source: fields that are not known are left out, and so are empty ones. */
export function known<T extends object>(fields: { readonly [K in keyof T]-?: T[K] | undefined }): T {
  const filled = Object.entries(fields).filter(([, value]) => value !== undefined && value !== '')
  return Object.fromEntries(filled) as T
}
