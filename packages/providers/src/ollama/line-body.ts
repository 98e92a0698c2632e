import { isJsonObject } from '../shared/json-reading.ts'
import { failureInStream, unreadableLine } from './failure.ts'
import type { WireLine } from './wire.ts'

/** A body that was read line by line on its way to the official client. */
export interface LineBody {
  /** What the client gets: for each line a token, `{}`, and for the last one `{"done":true}`. */
  readonly tokens: ReadableStream<Uint8Array>
  /** The line that the client's latest token stands for. */
  readonly take: () => WireLine | undefined
  /** Reads what is left, for the sake of the connection. Rejects when that breaks. */
  readonly drain: () => Promise<void>
}

const lineFeed = 0x0a

/**
 * Reads the lines of a body before the official client does, which writes those that it cannot read to the console, goes
 * on without them, and knows an error only as a text. So the client carries tokens, and no line is parsed twice. The first
 * line that is no JSON object, or that reports an error, ends the body with a `ProviderError`, when what came before it
 * has been read. Half a line at the end is left out: the reply was cut there.
 */
export function lineBody(source: ReadableStream<Uint8Array>, onBytes: () => void): LineBody {
  const reader = source.getReader()
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()]
  const lines: WireLine[] = []
  let rest: Uint8Array = new Uint8Array()
  let failure: Error | undefined
  /** Keeps the lines that may pass, and answers their tokens; the first that may not becomes the failure. */
  const tokensOf = (whole: Uint8Array): string => {
    let tokens = ''
    for (const text of decoder.decode(whole).split('\n')) {
      if (text.trim() === '') continue
      const line = parsed(text)
      failure = faultIn(line)
      if (failure !== undefined) break
      lines.push(line as WireLine)
      tokens += (line as WireLine).done === true ? '{"done":true}\n' : '{}\n'
    }
    return tokens
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
          const text = tokensOf(bytes.subarray(0, end))
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
  return { tokens, take: () => lines.shift(), drain: () => drained(reader) }
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

/** How much of what stands behind the last line feed is a line: all, or nothing where it was cut. */
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
