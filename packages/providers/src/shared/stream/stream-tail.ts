import { isJsonObject } from '@tallystick/core/kit'

/** How a stream of events stopped: by the wire's own last word, at the end of the body, or by a break. */
export type StreamEnding = 'terminated' | 'clean' | 'broken'

const terminator = /[\r\n]data: ?\[DONE\]/
/** A field that no client of an event stream reads, and in which some servers say why there is no more. */
const errorField = /[\r\n]error: ?(?=[{"\w])/
// More than a terminator is long, so that it is found when pieces part it.
const keptLength = 32
/** An error is short, and a page in its place need not be kept. */
const maxErrorLength = 64 * 1024

/** What the bytes of a body of server-sent events say beside its events. */
export class StreamTail {
  readonly #decoder = new TextDecoder()
  // The first line begins where another could have ended.
  #last = '\n'
  #beginning = ''
  #error: string | undefined
  #begun = false
  #terminated = false
  #ended = false

  /** Bytes passed. */
  saw(bytes: Uint8Array): void {
    const passed = this.#decoder.decode(bytes, { stream: true })
    if (!this.#begun) this.#beginning = (this.#beginning + passed).slice(0, maxErrorLength)
    const text = this.#last + passed
    this.#terminated ||= terminator.test(text)
    if (this.#error !== undefined) this.#error = (this.#error + passed).slice(0, maxErrorLength)
    else {
      const field = errorField.exec(text)
      if (field) this.#error = text.slice(field.index + field[0].length)
    }
    this.#last = text.slice(-keptLength)
  }

  /** An event came of it: it is a stream. */
  begun(): void {
    this.#begun = true
    this.#beginning = ''
  }

  /** The body came to its proper end. */
  ended(): void {
    this.#ended = true
  }

  /** Whether the wire's last word passed, on a line of its own. */
  get terminated(): boolean {
    return this.#terminated
  }

  /** Whether the body ended in the middle of a line. */
  get endedInLine(): boolean {
    return this.#ended && !/[\r\n]$/.test(this.#last)
  }

  /** What the server says went wrong where no event says so: in a field of its own, or as the JSON that is the whole body. */
  get error(): unknown {
    if (this.#error !== undefined) {
      const [line = ''] = /^[^\r\n]*/.exec(this.#error) ?? []
      return parsed(line) ?? line
    }
    const body = parsed(this.#beginning)
    const only: unknown = Array.isArray(body) && body.length === 1 ? body[0] : body
    if (!isJsonObject(only)) return undefined
    const isError = ['error', 'message', 'detail'].some((name) => name in only) && !('choices' in only)
    return isError ? (only['error'] ?? only) : undefined
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
