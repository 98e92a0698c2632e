import { option, type Schema, requireOptions, readCode } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import {
  type ExchangeEnding,
  type ExchangeLine,
  type Matching,
  toPiece,
  RecordingWriter,
  describeRequest,
  SecretFilter,
} from './file.ts'

const { anyFunction, fields, filledText, maybe, oneOf } = option

const recordingOptions: Schema = fields<RecordingFetchOptions>({ fetch: maybe(anyFunction) })

export const playedOptions: Schema = fields<PlayedFetchOptions>({
  match: maybe(oneOf(['request', 'order'])),
})

export function requireRecordingOptions(
  maker: string,
  check: Schema,
  { file, options }: { readonly file: unknown; readonly options: unknown },
): void {
  requireOptions(maker, filledText, file, 'the file')
  requireOptions(maker, check, options)
}

// The headers that adapters read. Others name the account, or set cookies.
const keptHeaders = /^(content-type|request-id|x-request-id|retry-after|retry-after-ms|x-should-retry)$/

/**
 * Returns a `fetch` for an adapter or its client, which makes the requests and records each with its answer in `file`, to the
 * byte and in the pieces that came, for `playedFetch`. Headers of requests, queries, and secrets in headers are not written.
 * The first answer replaces an earlier recording.
 *
 * Throws `ConfigurationError` if the file cannot be written.
 */
export function recordingFetch(file: string, options: RecordingFetchOptions = {}): typeof globalThis.fetch {
  requireRecordingOptions('recordingFetch', recordingOptions, { file, options })
  const writer = new RecordingWriter(file, 'exchanges')
  return async (input, init) => {
    const number = writer.next()
    const { request, secrets } = await describeRequest(input, init)
    const write = (line: ExchangeLine): void => writer.write({ number, ...line } as unknown as JsonObject)
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined)
    try {
      const response = await (options.fetch ?? globalThis.fetch)(input, init)
      const { status } = response
      const headers = Object.fromEntries([...response.headers].filter(([name]) => keptHeaders.test(name)))
      write({ request, status, headers })
      return recordBody(response, { secrets, signal, write })
    } catch (error) {
      write({ request, headers: {} })
      write({ ending: toEnding(error, signal) })
      throw error
    }
  }
}

interface Recording {
  readonly secrets: readonly string[]
  /** A caller who gives up stops reading, which the body alone does not show. */
  readonly signal: AbortSignal | undefined
  readonly write: (line: ExchangeLine) => void
}

/** Writes each piece of an answer before passing it on. */
function recordBody(response: Response, { secrets, signal, write }: Recording): Response {
  const pieces = new SecretFilter(secrets, (bytes) => write(toPiece(bytes)))
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
          end(toEnding(error, signal))
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

function toEnding(error: unknown, signal: AbortSignal | undefined): ExchangeEnding {
  if (signal?.aborted || (error instanceof Error && error.name === 'AbortError')) return { type: 'abandoned' }
  const cause = error instanceof Error ? error.cause : undefined
  const code = readCode(error) ?? readCode(cause)
  const message = error instanceof Error ? error.message : 'The connection broke.'
  return { type: 'broken', message, ...(code !== undefined && { code }) }
}

/** Options of `playedFetch`, all optional. */
export interface PlayedFetchOptions {
  /**
   * `request` (the default): each request gets the answer that was recorded for it, by method, path and body; run ids
   * in ids of tool calls may differ. `order`: the first request gets the first answer, whatever it asks.
   */
  readonly match?: Matching | undefined
}

/** Options of `recordingFetch`, all optional. */
export interface RecordingFetchOptions {
  /** The function that makes the requests. Default: the host's own `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** Options of `playedModel`, all optional. */
export interface PlayedModelOptions {
  /**
   * `request` (the default): each call gets the reply that was recorded for its request; run ids in ids of tool calls
   * may differ. `order`: the first call gets the first reply, whatever it asks.
   */
  readonly match?: Matching | undefined
}
