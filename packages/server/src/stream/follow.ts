import type { Clock } from '@tallystick/core'
import { caughtUp, type Changes } from '@tallystick/core/store-kit'
import type { Observable } from 'rxjs'

/** A server-sent event. */
export interface SseFrame {
  /** A reader that reconnects sends it back as `Last-Event-ID`. */
  readonly id?: string | undefined
  readonly data: string
}

export function formatFrame({ id, data }: SseFrame): string {
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `${id === undefined ? '' : `id: ${id}\n`}${lines.join('')}\n`
}

/** A comment, which readers ignore: it shows that the connection lives. */
const heartbeatFrame = ': \n\n'

/** The headers of a stream: no proxy may buffer or cache it. */
export const streamHeaders: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}

export interface StreamHost {
  readonly clock: Clock
  readonly heartbeatMs: number
  /** Ends the streams when the server stops. */
  readonly stopping: AbortSignal
  readonly report: (error: unknown, what: string) => void
}

/** Yielded when nothing came for the time of a heartbeat. */
export const idle: unique symbol = Symbol('idle')

/**
 * Yields what a ledger records: each item, `caughtUp` after all that is recorded, and `idle`. It reads the ledger only when
 * it is asked for more. Ends after what is recorded if the server stops, and at once if `signal` is aborted.
 */
export async function* follow<Item>(
  changes: Changes<Item>,
  { clock, heartbeatMs, stopping }: StreamHost,
  signal: AbortSignal = new AbortController().signal,
): AsyncGenerator<Item | typeof caughtUp | typeof idle, void> {
  let ending: Promise<unknown> | undefined
  const end = (): Promise<unknown> => (ending ??= changes.return())
  const onStop = (): void => changes.wake()
  // A failure to end is thrown below.
  const onAbort = (): void => void end().catch(() => {})
  stopping.addEventListener('abort', onStop)
  signal.addEventListener('abort', onAbort)
  let next: ReturnType<Changes<Item>['next']> | undefined
  let isWaiting = false
  try {
    while (!signal.aborted) {
      next ??= changes.next()
      let item: Awaited<typeof next> | typeof idle
      if (isWaiting) {
        const heartbeat = Promise.withResolvers<typeof idle>()
        const stopTimer = clock.schedule(heartbeatMs, () => heartbeat.resolve(idle))
        item = await Promise.race([next, heartbeat.promise]).finally(stopTimer)
      } else item = await next
      if (item === idle) yield idle
      else {
        next = undefined
        if (item.done) return
        isWaiting = item.value === caughtUp
        yield item.value
        if (isWaiting && stopping.aborted) return
      }
    }
  } finally {
    stopping.removeEventListener('abort', onStop)
    signal.removeEventListener('abort', onAbort)
    await end()
  }
}

/** The changes that a stream follows, and how its reader sees them. */
export interface Followed<Item> {
  readonly changes: Changes<Item>
  /** Returns the frames for an item; `''` if the reader does not see it. */
  readonly format: (item: Item) => string | Promise<string>
  /** True if an item is the last one. */
  readonly isLast: (item: Item) => boolean
  /** Called when every recorded item was read: returns the last text if the stream ends there. */
  readonly endAtWait?: () => Promise<string | undefined>
}

/** The most text that is gathered before the reader takes it, in characters. */
const maxChunk = 65_536

/** Yields the text of a stream in chunks, until `signal` is aborted. */
export async function* readChunks<Item>(
  { changes, format, isLast, endAtWait }: Followed<Item>,
  host: StreamHost,
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  let text = ''
  for await (const item of follow(changes, host, signal)) {
    if (item === caughtUp || item === idle) {
      // Also checked when idle: what a run waits for can be recorded in a child run, which the stream does not follow.
      const last = await endAtWait?.()
      if (last !== undefined) return yield text + last
      if (item === idle) text += heartbeatFrame
    } else {
      text += await format(item)
      if (isLast(item)) return yield text
      if (text.length < maxChunk) continue
    }
    if (text !== '') yield text
    text = ''
  }
}

/** The most live text that waits for a reader, in characters. Text beyond that is left out: the record brings it. */
const maxLive = 65_536

/**
 * Streams chunks to a reader of any speed: a slow reader costs one chunk of memory, and one that has left costs nothing.
 * Live frames are sent as they come, between the chunks.
 */
export function streamChunks(
  open: (signal: AbortSignal) => AsyncGenerator<string, void>,
  { report }: StreamHost,
  live$?: Observable<string>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const left = new AbortController()
  const chunks = open(left.signal)
  let reading: ReturnType<typeof chunks.next> | undefined
  let live = ''
  let arrived = Promise.withResolvers<'live'>()
  const frames = live$?.subscribe({
    next: (frame) => {
      if (live.length < maxLive) live += frame
      arrived.resolve('live')
    },
    error: (error: unknown) => report(error, 'The reader of a stream gets no live text'),
  })
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          reading ??= chunks.next()
          // Without live text no race: each would leave a waiter at a promise that never settles.
          const first = await (frames ? Promise.race([arrived.promise, reading]) : reading)
          if (first === 'live') {
            arrived = Promise.withResolvers()
            controller.enqueue(encoder.encode(live))
            live = ''
            return
          }
          reading = undefined
          if (!first.done) return controller.enqueue(encoder.encode(first.value))
        } catch (error) {
          // The reader reconnects and continues from its place.
          report(error, 'A stream of events ended early')
        }
        frames?.unsubscribe()
        controller.close()
      },
      cancel() {
        frames?.unsubscribe()
        left.abort()
        chunks.return().catch((error: unknown) => report(error, 'A stream of events did not end'))
      },
    },
    { highWaterMark: 0 },
  )
}
