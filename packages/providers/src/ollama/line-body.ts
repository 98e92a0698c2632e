import { isJsonObject } from '../shared/json-reading.ts'
import { failureInStream, unreadableLine } from './failure.ts'

/** A body that holds nothing but whole lines, each a JSON object without an `error`. */
export interface LineBody {
  readonly body: ReadableStream<Uint8Array>
  /** Reads what is left, for the sake of the connection. Rejects when that breaks. */
  readonly drain: () => Promise<void>
}

const lineFeed = 0x0a

/**
 * Checks a body on its way to the official client, which writes lines that it cannot read to the console and goes on
 * without them. The first line that is no JSON object, or that reports an error, ends the body with a `ProviderError`,
 * when what came before it has been read. Half a line at the end is left out: the reply was cut there.
 */
export function lineBody(source: ReadableStream<Uint8Array>, onBytes: () => void): LineBody {
  const reader = source.getReader()
  const decoder = new TextDecoder()
  let rest: Uint8Array = new Uint8Array()
  let failure: Error | undefined
  /** The lines of these bytes that may pass; the first that may not becomes the failure. */
  const passing = (lines: Uint8Array): Uint8Array => {
    const kept: Uint8Array[] = []
    for (let from = 0; from < lines.length && failure === undefined;) {
      const end = lines.indexOf(lineFeed, from)
      const next = end === -1 ? lines.length : end + 1
      const bytes = lines.subarray(from, next)
      const line = decoder.decode(bytes).trim()
      failure = line === '' ? undefined : faultIn(line)
      // The client takes a blank line for one that it cannot read.
      if (line !== '' && failure === undefined) kept.push(bytes)
      from = next
    }
    return kept.length === 1 ? kept[0]! : joined(kept)
  }
  // Thrown at the next pull, since an error drops what the reader has not taken yet.
  const throwFailure = (): void => {
    if (failure !== undefined) throw failure
  }
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          throwFailure()
          const { done, value } = await reader.read()
          if (done) {
            const last = decoder.decode(rest).trim()
            if (isWhole(last)) enqueueSome(controller, passing(rest))
            throwFailure()
            return controller.close()
          }
          onBytes()
          const bytes = rest.length === 0 ? value : joined([rest, value])
          const end = bytes.lastIndexOf(lineFeed) + 1
          rest = bytes.subarray(end)
          if (enqueueSome(controller, passing(bytes.subarray(0, end)))) return
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  return { body, drain: () => drained(reader) }
}

async function drained(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
}

function enqueueSome(controller: ReadableStreamDefaultController<Uint8Array>, bytes: Uint8Array): boolean {
  if (bytes.length > 0) controller.enqueue(bytes)
  return bytes.length > 0
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

function faultIn(line: string): Error | undefined {
  const value = parsed(line)
  if (!isJsonObject(value)) return unreadableLine()
  return 'error' in value ? failureInStream(value['error']) : undefined
}

function isWhole(line: string): boolean {
  return line !== '' && parsed(line) !== undefined
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
