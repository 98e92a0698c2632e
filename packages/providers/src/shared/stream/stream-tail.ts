/** How a stream of events stopped: by the wire's own last word, at the end of the body, or by a break. */
export type StreamEnding = 'terminated' | 'clean' | 'broken'

const terminator = /[\r\n]data: ?\[DONE\]/
// More than the terminator is long, so that it is found when pieces part it.
const keptLength = 32
const decoder = new TextDecoder('latin1')

/** What the last bytes of a body of server-sent events prove. */
export class StreamTail {
  // The first line begins where another could have ended.
  #last = '\n'
  #terminated = false
  #ended = false

  /** Bytes passed. */
  saw(bytes: Uint8Array): void {
    const text = this.#last + decoder.decode(bytes)
    this.#terminated ||= terminator.test(text)
    this.#last = text.slice(-keptLength)
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
}
