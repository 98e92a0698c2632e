import { isJsonObject } from '@tallystick/core/kit'
import { failureInStream, unreadableLine } from './failure.ts'

/** A body whose lines were looked at on their way to the official client. */
export interface LineBody {
  readonly lines: ReadableStream<Uint8Array>
  /** Reads what is left, for the sake of the connection. Rejects when that breaks. */
  readonly drain: () => Promise<void>
}

/**
 * Looks at the lines of a body before the official client does, which writes those that it cannot read to the console and
 * goes on without them, blank ones too, and knows an error only as a text. What the client can read passes as it is. The first
 * line that is no JSON object, or that reports an error, ends the body with a `ProviderError`, when what came before it has
 * been read. Half a line at the end is left out: the reply was cut there.
 */
export function lineBody(source: ReadableStream<Uint8Array>, onBytes: () => void): LineBody {
  const reader = source.getReader()
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()]
  let rest = ''
  let failure: Error | undefined
  /** The lines that may pass; the first that may not becomes the failure. */
  const passing = (texts: readonly string[]): string => {
    let passed = ''
    for (const text of texts) {
      if (text.trim() === '') continue
      failure = faultIn(text)
      if (failure !== undefined) break
      passed += `${text}\n`
    }
    return passed
  }
  const throwFailure = (): void => {
    if (failure !== undefined) throw failure
  }
  const lines = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          // Thrown at the next pull, since an error drops what the reader has not taken yet.
          throwFailure()
          const { done, value } = await reader.read()
          if (!done) onBytes()
          const texts = (rest + decoder.decode(value, { stream: !done })).split('\n')
          rest = texts.pop() ?? ''
          if (done && parsed(rest) !== undefined) texts.push(rest)
          const passed = passing(texts)
          if (passed !== '') controller.enqueue(encoder.encode(passed))
          if (done) {
            throwFailure()
            return controller.close()
          }
          if (passed !== '') return
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  return { lines, drain: () => drained(reader) }
}

async function drained(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
}

function faultIn(text: string): Error | undefined {
  const line = parsed(text)
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
