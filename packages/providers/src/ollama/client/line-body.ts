import { isJsonObject } from '@tallystick/core/kit'
import { failureInStream, unreadableLine } from './failure.ts'
import { plainLineOf } from './plain-line.ts'
import type { WireLine } from './wire.ts'

/** A body that was read line by line on its way to the official client. */
export interface LineBody {
  /** What the client gets: a token, `{}`, for the lines that came together, and `{"done":true}` where the last is among them. */
  readonly tokens: ReadableStream<Uint8Array>
  /** The lines that the client's tokens so far stand for, each once. */
  readonly take: () => readonly WireLine[]
  /** Reads what is left, for the sake of the connection. Rejects when that breaks. */
  readonly drain: () => Promise<void>
}

const lineFeed = 0x0a
const lastToken = '{"done":true}\n'

/**
 * Reads the lines of a body before the official client does, which writes those that it cannot read to the console,
 * continues without them, and knows an error only as a text. So the client carries tokens, and no line is parsed
 * twice. The first line that is no JSON object, or that reports an error, ends the body with a `ProviderError`, when
 * what came before it has been read. Half a line at the end is left out: the reply was cut there.
 */
export function lineBody(source: ReadableStream<Uint8Array>, onBytes: () => void): LineBody {
  const reader = source.getReader()
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()]
  let lines: WireLine[] = []
  let rest: Uint8Array = new Uint8Array()
  let failure: Error | undefined
  /** Keeps the lines that may pass, and answers their token; the first that may not becomes the failure. */
  const tokenOf = (whole: Uint8Array): string => {
    let token = ''
    for (const text of decoder.decode(whole).split('\n')) {
      const line = plainLineOf(text) ?? parsed(text)
      if (line === undefined && text.trim() === '') continue
      failure = faultIn(line)
      if (failure !== undefined) break
      lines.push(line as WireLine)
      if (token !== lastToken) token = (line as WireLine).done === true ? lastToken : '{}\n'
    }
    return token
  }
  const throwFailure = (): void => {
    if (failure !== undefined) throw failure
  }
  const tokens = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          // Thrown at the next pull, since an error drops what the reader has not taken yet.
          throwFailure()
          const { done, value } = await reader.read()
          if (!done) onBytes()
          const bytes = joined(rest, value)
          const end = done ? wholeLength(bytes, decoder) : bytes.lastIndexOf(lineFeed) + 1
          rest = bytes.subarray(end)
          const text = tokenOf(bytes.subarray(0, end))
          if (text !== '') controller.enqueue(encoder.encode(text))
          if (done) throwFailure()
          if (done) return controller.close()
          if (text !== '') return
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  const take = (): readonly WireLine[] => {
    const taken = lines
    lines = []
    return taken
  }
  return { tokens, take, drain: () => drained(reader) }
}

async function drained(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
}

function joined(rest: Uint8Array, value: Uint8Array | undefined): Uint8Array {
  if (rest.length === 0 || value === undefined) return value ?? rest
  const bytes = new Uint8Array(rest.length + value.length)
  bytes.set(rest)
  bytes.set(value, rest.length)
  return bytes
}

/** How much of the text after the last line feed is a line: all, or nothing if it was cut. */
function wholeLength(bytes: Uint8Array, decoder: { decode(bytes: Uint8Array): string }): number {
  return parsed(decoder.decode(bytes)) === undefined ? 0 : bytes.length
}

function faultIn(line: unknown): Error | undefined {
  if (!isJsonObject(line)) return unreadableLine()
  return 'error' in line ? failureInStream(line['error']) : undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
