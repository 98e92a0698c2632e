import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { changesOf } from '@tallystick/core/kit'
import { followedStream, type StreamHost } from '../stream/followed-stream.ts'
import { RunMoves, outOf, type MoveTable, type RunMove } from './run-moves.ts'

/** How a protocol puts a run into a stream of server-sent events. */
export interface RunProtocol<Out> {
  /** What each move is; a new one for each stream, since it may remember what it has said. */
  readonly newTable: () => MoveTable<Out>
  readonly textOf: (out: Out) => string
  /** The text after everything. */
  readonly ending: string
}

/** A stream of a run after an event (0: from its first) until it ends, or waits for a command. */
export function protocolStream<Out>(
  ledger: Ledger,
  { runId, after }: { readonly runId: RunId; readonly after: number },
  protocol: RunProtocol<Out>,
  host: StreamHost,
): ReadableStream<Uint8Array> {
  const moves = new RunMoves()
  const table = protocol.newTable()
  let isOpen = after === 0
  const outs = (of: readonly RunMove[]): readonly Out[] => of.flatMap((move) => outOf(table, move))
  const textOf = (of: readonly RunMove[]): string => outs(of).map(protocol.textOf).join('')
  /** The text that continues the run where a stream before this one ended. */
  const opening = (): string => {
    if (isOpen) return ''
    isOpen = true
    return textOf(moves.reopen())
  }
  return followedStream<RuntimeEvent>(
    {
      changes: changesOf(ledger, runId, { after: 0 }),
      textOf: (event) => {
        if (event.seq > after) {
          const text = opening() + textOf(moves.next(event))
          return text + (event.type === 'run_finished' ? protocol.ending : '')
        }
        // Read again, so that the mapping knows what it has said.
        outs(moves.next(event))
        return ''
      },
      isLast: ({ type }) => type === 'run_finished',
      atRest: () => (moves.isWaiting ? opening() + textOf(moves.rest()) + protocol.ending : undefined),
    },
    host,
  )
}
