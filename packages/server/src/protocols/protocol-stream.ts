import type { RunId, RuntimeEvent } from '@tallystick/core'
import { changesOf } from '@tallystick/core/kit'
import { followedStream, type StreamHost } from '../stream/followed-stream.ts'
import type { FollowedLedger } from '../stream/shared-reads.ts'
import type { MoveTable } from './run-moves.ts'
import { RunReader } from './run-reader.ts'

/** A run, and the event after which it is followed: 0 for all of it. */
export interface FollowedRun {
  readonly runId: RunId
  readonly after: number
}

/** How a protocol puts a run into a stream of server-sent events. */
export interface RunProtocol<Out> {
  /** Makes the table for one stream; it may remember what it has sent. */
  readonly newTable: () => MoveTable<Out>
  readonly textOf: (out: Out) => string
  /** The text at the end of the stream. */
  readonly ending: string
}

/** A stream of a run until it ends, or waits for a command. */
export function protocolStream<Out>(
  { ledger, reads }: FollowedLedger,
  { runId, after }: FollowedRun,
  protocol: RunProtocol<Out>,
  host: StreamHost,
): ReadableStream<Uint8Array> {
  const reader = new RunReader(ledger, after, protocol.newTable())
  const textOf = (outs: readonly Out[]): string => outs.map(protocol.textOf).join('')
  return followedStream<RuntimeEvent>(
    {
      changes: changesOf(reads.forReader(), runId, { after: 0 }),
      textOf: (event) => textOf(reader.read(event)) + (event.type === 'run_finished' ? protocol.ending : ''),
      isLast: ({ type }) => type === 'run_finished',
      endAtWait: async () => {
        const last = await reader.endAtWait()
        return last && textOf(last) + protocol.ending
      },
    },
    host,
  )
}
