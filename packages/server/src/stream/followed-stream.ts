import type { Clock } from '@tallystick/core'
import { caughtUp, type Changes } from '@tallystick/core/kit'
import { heartbeatFrame } from './sse-frame.ts'

/** What a stream follows, and how its reader sees it. */
export interface Followed<Item> {
  readonly changes: Changes<Item>
  /** The text that an item adds to the stream: frames, or `''` for an item that the reader does not see. */
  readonly textOf: (item: Item) => string | Promise<string>
  /** Whether nothing follows an item. */
  readonly isLast: (item: Item) => boolean
  /** Called when every recorded item was read: the text with which the stream ends there, if it does. */
  readonly atRest?: () => string | undefined
}

/** What every stream of a server shares. */
export interface StreamHost {
  readonly clock: Clock
  readonly heartbeatMs: number
  /** Ends the streams when the server stops. */
  readonly stopping: AbortSignal
  readonly report: (error: unknown, what: string) => void
}

/** The most text that is put together before the reader takes it, in characters. */
const maxChunk = 65_536

/**
 * A stream of what a ledger records, for a reader of any speed. It looks at the ledger when the reader takes something,
 * so that a slow reader costs one chunk of memory, and one that is gone costs nothing.
 */
export function followedStream<Item>(
  { changes, textOf, isLast, atRest }: Followed<Item>,
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
  /** Returns the text of the recorded items that are not yet read, and whether the stream ends after it. */
  const take = async (): Promise<{ readonly text: string; readonly ends: boolean }> => {
    let text = ''
    for (;;) {
      next ??= changes.next()
      const item = await orHeartbeat(next, clock, heartbeatMs)
      if (item === undefined) return { text: text + heartbeatFrame, ends: false }
      next = undefined
      if (item.done) return { text, ends: true }
      if (item.value === caughtUp) {
        const last = atRest?.()
        if (last !== undefined) return { text: text + last, ends: true }
        if (text !== '' || stopping.aborted) return { text, ends: stopping.aborted }
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
          // The reader reconnects, and continues where it was.
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

/** Waits for an item; `undefined` when the time for a heartbeat has come first. */
async function orHeartbeat<Result>(
  item: Promise<Result>,
  clock: Clock,
  heartbeatMs: number,
): Promise<Result | undefined> {
  const due = Promise.withResolvers<undefined>()
  const stopTimer = clock.schedule(heartbeatMs, () => due.resolve(undefined))
  return await Promise.race([item, due.promise]).finally(stopTimer)
}
