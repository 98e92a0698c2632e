/** How a stream of events stopped: by the wire's own last word, at the end of the body, or by a break. */
export type StreamEnding = 'terminated' | 'clean' | 'broken'

/** What the last bytes of a body prove. */
export interface StreamTail {
  /** Bytes that passed. */
  readonly saw: (bytes: Uint8Array) => void
  /** The body came to its proper end. */
  readonly ended: () => void
  /** Whether the wire's last word passed, on a line of its own. */
  readonly terminated: boolean
  /** Whether the body ended in the middle of a line. */
  readonly endedInLine: boolean
}

const terminator = /[\r\n]data: ?\[DONE\]/
// More than the terminator is long, so that it is found when pieces part it.
const keptLength = 32
const decoder = new TextDecoder('latin1')

/** Watches the end of a body of server-sent events. */
export function streamTail(): StreamTail {
  // The first line begins where another could have ended.
  let last = '\n'
  let terminated = false
  let ended = false
  return {
    saw(bytes) {
      const text = last + decoder.decode(bytes)
      terminated ||= terminator.test(text)
      last = text.slice(-keptLength)
    },
    ended() {
      ended = true
    },
    get terminated() {
      return terminated
    },
    get endedInLine() {
      return ended && !/[\r\n]$/.test(last)
    },
  }
}
