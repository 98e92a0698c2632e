import type { RunId, RuntimeEvent } from '@tallystick/core'
import { changesOf } from '@tallystick/core/kit'
import { followedStream, type StreamHost } from '../stream/followed-stream.ts'
import type { FollowedLedger } from '../stream/shared-reads.ts'
import type { MoveTable } from './run-moves.ts'
import { RunReader, type RunPlace } from './run-reader.ts'

/** A run, and the place in it from which it is followed. */
export type FollowedRun = RunPlace & {
  readonly runId: RunId
  /** The run that is followed instead, if this one ends before its place comes. */
  readonly next?: Promise<FollowedRun | undefined>
}

/** How a protocol puts a run into a stream of server-sent events. */
export interface RunProtocol<Out> {
  /** Makes the table for one stream; it may remember what it has sent. */
  readonly newTable: () => MoveTable<Out>
  readonly textOf: (out: Out) => string
  /** The text at the end of the stream. */
  readonly ending: string
}

/** A stream of a run until it ends, waits for a command, or answers a message that is not of this stream. */
export function protocolStream<Out>(
  served: FollowedLedger,
  run: FollowedRun,
  protocol: RunProtocol<Out>,
  host: StreamHost,
): ReadableStream<Uint8Array> {
  const reader = new RunReader(served.ledger, run, protocol.newTable())
  const textOf = (outs: readonly Out[]): string =>
    outs.map(protocol.textOf).join('') + (reader.isOver && isLast() ? protocol.ending : '')
  const isLast = (): boolean => reader.hasBegun || reader.isWaiting || run.next === undefined
  const stream = followedStream<RuntimeEvent>(
    {
      changes: changesOf(served.reads.forReader(), run.runId, { after: 0 }),
      textOf: (event) => textOf(reader.read(event)),
      isLast: () => reader.isOver,
      endAtWait: async () => {
        const last = await reader.endAtWait()
        return last && textOf(last)
      },
    },
    host,
  )
  if (run.next === undefined) return stream
  const { next } = run
  return continued(stream, async () => {
    if (!reader.isOver || isLast()) return undefined
    const following = await next.catch(() => undefined)
    return following && protocolStream(served, following, protocol, host)
  })
}

/** A stream, and the one that follows it. */
function continued(
  first: ReadableStream<Uint8Array>,
  then: () => Promise<ReadableStream<Uint8Array> | undefined>,
): ReadableStream<Uint8Array> {
  let reader = first.getReader()
  let isSecond = false
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
          const second = isSecond ? undefined : await then()
          if (second === undefined) return controller.close()
          isSecond = true
          reader = second.getReader()
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
