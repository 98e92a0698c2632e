import type { JsonObject } from '@tallystick/core/vocabulary'
import { type ExchangeEnding, type ExchangeLine, pieceOf, requestOf } from './file/exchange.ts'
import { recordingWriter } from './file/recording-file.ts'
import { withoutSecretsAcross } from './file/secrets.ts'
import { recordingOptions, requireRecordingOptions } from './option-check.ts'
import type { RecordingFetchOptions } from './options.ts'

// What adapters read of an answer's head. Others name the account, or set cookies.
const keptHeaders = /^(content-type|request-id|x-request-id|retry-after|retry-after-ms|x-should-retry)$/

/**
 * A `fetch` to hand to an adapter or to its client, which makes the requests and keeps each with its answer in `file`, to
 * the byte and in the pieces that they came in, for `playedFetch`. No header of a request, no query and nothing that its
 * headers show to be a secret is written. The recording that was there is replaced when the first
 * answer begins.
 *
 * Throws `ConfigurationError` where the file cannot be written.
 */
export function recordingFetch(file: string, options: RecordingFetchOptions = {}): typeof globalThis.fetch {
  requireRecordingOptions('recordingFetch', recordingOptions, { file, options })
  const writer = recordingWriter(file, 'exchanges')
  return async (input, init) => {
    const number = writer.next()
    const { request, secrets } = await requestOf(input, init)
    const write = (line: ExchangeLine): void => writer.write({ number, ...line } as unknown as JsonObject)
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined)
    try {
      const response = await (options.fetch ?? globalThis.fetch)(input, init)
      const { status } = response
      const headers = Object.fromEntries([...response.headers].filter(([name]) => keptHeaders.test(name)))
      write({ request, status, headers })
      return recorded(response, { secrets, signal, write })
    } catch (error) {
      write({ request, headers: {} })
      write({ ending: endingOf(error, signal) })
      throw error
    }
  }
}

interface Recording {
  readonly secrets: readonly string[]
  /** Who has given up reads no more, so that the body alone does not show it. */
  readonly signal: AbortSignal | undefined
  readonly write: (line: ExchangeLine) => void
}

/** The same answer, each piece of which is written before it is handed on. */
function recorded(response: Response, { secrets, signal, write }: Recording): Response {
  const pieces = withoutSecretsAcross(secrets, (bytes) => write(pieceOf(bytes)))
  let ended = false
  const end = (ending: ExchangeEnding): void => {
    signal?.removeEventListener('abort', abandon)
    if (ended) return
    ended = true
    pieces.flush()
    write({ ending })
  }
  const abandon = (): void => end({ type: 'abandoned' })
  if (response.body === null) {
    end({ type: 'end' })
    return response
  }
  signal?.addEventListener('abort', abandon)
  const reader = response.body.getReader()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) {
            end({ type: 'end' })
            return controller.close()
          }
          if (!ended) pieces.push(value)
          controller.enqueue(value)
        } catch (error) {
          end(endingOf(error, signal))
          throw error
        }
      },
      async cancel(reason) {
        abandon()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body, response)
}

function endingOf(error: unknown, signal: AbortSignal | undefined): ExchangeEnding {
  if (signal?.aborted || (error instanceof Error && error.name === 'AbortError')) return { type: 'abandoned' }
  const cause = error instanceof Error ? error.cause : undefined
  const code = codeOf(error) ?? codeOf(cause)
  const message = error instanceof Error ? error.message : 'The connection broke.'
  return { type: 'broken', message, ...(code !== undefined && { code }) }
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}
