import type { Clock } from '@tallystick/core'
import { isJsonObject } from '@tallystick/core/internal'
import type { Cancel } from '@tallystick/core/vocabulary'
import { parseJson } from './json.ts'

/** An HTTP answer without its body. */
export interface ResponseFacts {
  requestId?: string | undefined
  contentType?: string | undefined
  /** A successful answer that has no body at all, such as one of status 204. */
  hasNoBody?: boolean
}

/**
 * Reports every piece of a response's body as it passes. SDKs swallow a wire's keep-alive records, so the bytes are the only
 * sign of life. `onEnd` is not called if the reader cancels the body.
 */
export function observeResponse(
  response: Response,
  {
    onBytes,
    onEnd = () => {},
  }: { readonly onBytes: (bytes: Uint8Array) => void; readonly onEnd?: () => void },
): Response {
  if (!response.ok || typeof response.body?.getReader !== 'function') return response
  const reader = response.body.getReader()
  let cancelled = false
  // A TransformStream does the same, and takes a fifth more of the time of an adapter.
  const observed = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read()
      // Cancelling ends a pending read as if the body were done.
      if (cancelled) return
      if (done) {
        onEnd()
        return controller.close()
      }
      onBytes(value)
      controller.enqueue(value)
    },
    cancel(reason) {
      cancelled = true
      return reader.cancel(reason)
    },
  })
  return new Response(observed, response)
}

/** How long a call may take, in the options of each adapter. */
export interface Timeouts {
  /**
   * The longest wait for the beginning of an answer, in milliseconds, the loading of a model included. Default: 5 minutes,
   * after which Node's own fetch gives up, too.
   */
  readonly responseTimeoutMs?: number | undefined
  /** The longest silence while a reply streams, in milliseconds, which keep-alives interrupt. Default: 2 minutes. */
  readonly idleTimeoutMs?: number | undefined
  /**
   * The longest time in which nothing of the reply comes, in milliseconds, whatever keep-alives do. Default: 10 minutes; more
   * for a model that thinks longer without a word.
   */
  readonly contentTimeoutMs?: number | undefined
  /** The longest time for the whole reply, in milliseconds. Default: 1 hour. */
  readonly totalTimeoutMs?: number | undefined
}

/** Why a call took too long: no byte came, nothing of the reply came, or the reply had no end. */
export type Overlong = 'silent' | 'empty' | 'endless'

/**
 * Notices a call that takes too long, and calls `onOver` once. It has one timer, set again only when it goes off, so that a
 * sign of life costs only a look at the clock.
 */
export class SilenceWatch {
  readonly #clock: Clock
  readonly #limits: { readonly [name in keyof Timeouts]-?: number }
  readonly #onOver: (what: Overlong, limitMs: number) => void
  readonly #startedAt: number
  #lastSignAt: number
  #lastContentAt: number
  #hasBegun = false
  #cancel: Cancel | undefined

  constructor(clock: Clock, timeouts: Timeouts, onOver: (what: Overlong, limitMs: number) => void) {
    this.#clock = clock
    this.#limits = {
      responseTimeoutMs: timeouts.responseTimeoutMs ?? 300_000,
      idleTimeoutMs: timeouts.idleTimeoutMs ?? 120_000,
      contentTimeoutMs: timeouts.contentTimeoutMs ?? 600_000,
      totalTimeoutMs: timeouts.totalTimeoutMs ?? 3_600_000,
    }
    this.#onOver = onOver
    this.#startedAt = this.#lastSignAt = this.#lastContentAt = clock.now()
    this.#set()
  }

  /** A request was sent, and may wait for its answer. */
  sent(): void {
    this.#from(false)
  }

  /** The answer begins; from now on only pauses are allowed. */
  begun(): void {
    this.#from(true)
  }

  signOfLife(): void {
    this.#lastSignAt = this.#clock.now()
  }

  /** Something of the reply came. */
  content(): void {
    this.#lastContentAt = this.#clock.now()
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  #from(hasBegun: boolean): void {
    if (this.#cancel === undefined) return
    this.stop()
    this.#hasBegun = hasBegun
    this.#lastSignAt = this.#lastContentAt = this.#clock.now()
    this.#set()
  }

  #set(): void {
    const { at } = this.#next()
    this.#cancel = this.#clock.schedule(at - this.#clock.now(), () => {
      const { at: over, what, limitMs } = this.#next()
      if (over > this.#clock.now()) return this.#set()
      this.#cancel = undefined
      this.#onOver(what, limitMs)
    })
  }

  /** The limit that ends first. */
  #next(): { readonly at: number; readonly what: Overlong; readonly limitMs: number } {
    const { responseTimeoutMs, idleTimeoutMs, contentTimeoutMs, totalTimeoutMs } = this.#limits
    const silentMs = this.#hasBegun ? idleTimeoutMs : responseTimeoutMs
    const all = [
      { at: this.#lastSignAt + silentMs, what: 'silent', limitMs: silentMs },
      { at: this.#startedAt + totalTimeoutMs, what: 'endless', limitMs: totalTimeoutMs },
      { at: this.#lastContentAt + contentTimeoutMs, what: 'empty', limitMs: contentTimeoutMs },
    ] as const
    return all.slice(0, this.#hasBegun ? 3 : 2).reduce((first, one) => (one.at < first.at ? one : first))
  }
}

/** How a stream of events stopped: with the wire's last word, at the end of the body, or by a break. */
export type StreamEnding = 'terminated' | 'clean' | 'broken'

const terminator = /[\r\n]data: ?\[DONE\]/
/** A field that no client reads, and in which some servers report an error. */
const errorField = /[\r\n]error: ?(?=[{"\w])/
// Longer than a terminator, so that it is found across pieces.
const keptLength = 32
/** An error is short, and a page in its place need not be kept. */
const maxErrorLength = 64 * 1024

/** Reads what the bytes of server-sent events say beside the events. */
export class StreamTail {
  readonly #decoder = new TextDecoder()
  #last = '\n'
  #beginning = ''
  #error: string | undefined
  #begun = false
  #ended = false
  /** The wire's last word passed, on a line of its own. */
  terminated = false

  saw(bytes: Uint8Array): void {
    const passed = this.#decoder.decode(bytes, { stream: true })
    if (!this.#begun) this.#beginning = (this.#beginning + passed).slice(0, maxErrorLength)
    const text = this.#last + passed
    this.terminated ||= terminator.test(text)
    if (this.#error !== undefined) this.#error = (this.#error + passed).slice(0, maxErrorLength)
    else {
      const field = errorField.exec(text)
      if (field) this.#error = text.slice(field.index + field[0].length)
    }
    this.#last = text.slice(-keptLength)
  }

  /** An event came, so it is a stream. */
  begun(): void {
    this.#begun = true
    this.#beginning = ''
  }

  /** The body came to its proper end. */
  ended(): void {
    this.#ended = true
  }

  /** The body ended in the middle of a line. */
  get endedInLine(): boolean {
    return this.#ended && !/[\r\n]$/.test(this.#last)
  }

  /** The error that the server reports outside of events: in a field of its own, or as JSON that is the whole body. */
  get error(): unknown {
    if (this.#error !== undefined) {
      const [line = ''] = /^[^\r\n]*/.exec(this.#error) ?? []
      return parseJson(line) ?? line
    }
    const body = parseJson(this.#beginning)
    const only: unknown = Array.isArray(body) && body.length === 1 ? body[0] : body
    if (!isJsonObject(only)) return undefined
    const isError = ['error', 'message', 'detail'].some((name) => name in only) && !('choices' in only)
    return isError ? (only['error'] ?? only) : undefined
  }
}
