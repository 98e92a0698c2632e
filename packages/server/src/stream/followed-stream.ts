import type { Clock } from '@tallystick/core'
import { caughtUp, type Changes } from '@tallystick/core/store-kit'

/** A server-sent event. */
export interface SseFrame {
  /** A reader that reconnects sends it back as `Last-Event-ID`. */
  readonly id?: string | undefined
  readonly data: string
}

/** A comment, which readers ignore: it shows that the connection lives. */
const heartbeatFrame = ': \n\n'

export function formatFrame({ id, data }: SseFrame): string {
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `${id === undefined ? '' : `id: ${id}\n`}${lines.join('')}\n`
}

/** The headers of a stream: no proxy may buffer or cache it. */
export const streamHeaders: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}

/** The changes that a stream follows, and how its reader sees them. */
export interface Followed<Item> {
  readonly changes: Changes<Item>
  /** The frames for an item; `''` if the reader does not see it. */
  readonly textOf: (item: Item) => string | Promise<string>
  /** True if an item is the last one. */
  readonly isLast: (item: Item) => boolean
  /** Called when every recorded item was read: returns the last text if the stream ends there. */
  readonly endAtWait?: () => Promise<string | undefined>
}

export interface StreamHost {
  readonly clock: Clock
  readonly heartbeatMs: number
  /** Ends the streams when the server stops. */
  readonly stopping: AbortSignal
  readonly report: (error: unknown, what: string) => void
}

interface Taken {
  readonly text: string
  readonly ends: boolean
}

/** The most text that is gathered before the reader takes it, in characters. */
const maxChunk = 65_536

/**
 * Streams what a ledger records to a reader of any speed. It reads the ledger only when its reader takes data, so a slow
 * reader costs one chunk of memory, and one that has left costs nothing.
 */
export function streamChanges<Item>(
  { changes, textOf, isLast, endAtWait }: Followed<Item>,
  { clock, heartbeatMs, stopping, report }: StreamHost,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let next: ReturnType<Changes<Item>['next']> | undefined
  const onStop = (): void => changes.wake()
  stopping.addEventListener('abort', onStop)
  const end = async (): Promise<void> => {
    stopping.removeEventListener('abort', onStop)
    await changes.return()
  }
  /** Returns the output at a pause: no more items now, or none for the time of a heartbeat; `undefined` to go on waiting. */
  const pause = async (text: string, isLong: boolean): Promise<Taken | undefined> => {
    // Also checked at every heartbeat: what a run waits for can be recorded in a child run, which the stream does not follow.
    const last = await endAtWait?.()
    if (last !== undefined) return { text: text + last, ends: true }
    if (isLong) return { text: text + heartbeatFrame, ends: false }
    return text !== '' || stopping.aborted ? { text, ends: stopping.aborted } : undefined
  }
  const take = async (): Promise<Taken> => {
    let text = ''
    for (;;) {
      next ??= changes.next()
      const item = await waitOrHeartbeat(next, clock, heartbeatMs)
      if (item !== undefined) next = undefined
      if (item?.done) return { text, ends: true }
      if (item === undefined || item.value === caughtUp) {
        const paused = await pause(text, item === undefined)
        if (paused !== undefined) return paused
        continue
      }
      text += await textOf(item.value)
      if (isLast(item.value)) return { text, ends: true }
      if (text.length >= maxChunk) return { text, ends: false }
    }
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { text, ends } = await take()
          if (text !== '') controller.enqueue(encoder.encode(text))
          if (!ends) return
        } catch (error) {
          // The reader reconnects and continues from its place.
          report(error, 'A stream of events ended early')
        }
        controller.close()
        await end()
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  )
}

/** Waits for an item; resolves with `undefined` if a heartbeat is due first. */
async function waitOrHeartbeat<Result>(
  item: Promise<Result>,
  clock: Clock,
  heartbeatMs: number,
): Promise<Result | undefined> {
  const due = Promise.withResolvers<undefined>()
  const stopTimer = clock.schedule(heartbeatMs, () => due.resolve(undefined))
  return await Promise.race([item, due.promise]).finally(stopTimer)
}
