import { visibleText } from '../../content/visible-text.ts'

/** The beginning and the end of what a program writes to one stream. */
export interface KeptOutput {
  write(chunk: Uint8Array): void
  /** The text, with a mark where the middle is left out; of `maxBytes` at most where that is less than what is kept. */
  text(maxBytes?: number): string
  /** Bytes that were written, and bytes of them that the text leaves out. */
  readonly written: number
  readonly omitted: number
}

/** Keeps `maxBytes` of a stream: one half from its beginning, the other from its end. */
export function keptOutput(maxBytes: number): KeptOutput {
  const headBytes = Math.ceil(maxBytes / 2)
  const tailBytes = maxBytes - headBytes
  const head: Uint8Array[] = []
  let [headSize, written] = [0, 0]
  let tail: Uint8Array[] = []
  let tailSize = 0
  /** Many small pieces are put together now and then: a slice would keep all of its chunk. */
  const compact = (): void => {
    const whole = Buffer.concat(tail)
    tail = [Buffer.from(whole.subarray(Math.max(0, whole.length - tailBytes)))]
    tailSize = tail[0]?.length ?? 0
  }
  return {
    get written() {
      return written
    },
    get omitted() {
      return Math.max(0, written - headSize - Math.min(tailSize, tailBytes))
    },
    write(chunk) {
      written += chunk.length
      const first = chunk.subarray(0, headBytes - headSize)
      if (first.length > 0) {
        head.push(Buffer.from(first))
        headSize += first.length
      }
      const rest = chunk.subarray(first.length)
      if (rest.length === 0) return
      tail.push(Buffer.from(rest))
      tailSize += rest.length
      if (tailSize > 2 * tailBytes + 65_536 || tail.length > 4_096) compact()
    },
    text(shownBytes = maxBytes) {
      compact()
      const [start, end] = [Buffer.concat(head), Buffer.concat(tail)]
      const omitted = written - start.length - end.length
      if (omitted === 0 && written <= shownBytes) return visibleText(Buffer.concat([start, end]).toString())
      const half = Math.ceil(Math.min(shownBytes, maxBytes) / 2)
      const [first, last] =
        omitted === 0
          ? halves(Buffer.concat([start, end]), half)
          : [start.subarray(0, half), end.subarray(Math.max(0, end.length - half))]
      const [beginning, ending] = [wholeEnd(first), wholeStart(last)]
      const cut = written - beginning.length - ending.length
      return `${visibleText(beginning.toString())}\n… (${cut} bytes are left out) …\n${visibleText(ending.toString())}`
    },
  }
}

function halves(all: Buffer, half: number): readonly [Buffer, Buffer] {
  return [all.subarray(0, half), all.subarray(Math.max(half, all.length - half))]
}

/** Without the bytes at the end that begin a character and do not end it. */
function wholeEnd(bytes: Buffer): Buffer {
  for (let back = 1; back <= bytes.length; back++) {
    const byte = Number(bytes.at(-back))
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? bytes.subarray(0, -back) : bytes
  }
  return bytes
}

/** Without the bytes at the start that end a character and do not begin it. */
function wholeStart(bytes: Buffer): Buffer {
  let start = 0
  while (start < 3 && (Number(bytes[start]) & 0xc0) === 0x80) start++
  return bytes.subarray(start)
}
