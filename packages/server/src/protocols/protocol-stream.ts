import type { Ledger, RunId, RunState, RuntimeEvent } from '@tallystick/core'
import { changesOf } from '@tallystick/core/kit'
import { isSuspended } from '@tallystick/core/machine'
import { followedStream, type StreamHost } from '../stream/followed-stream.ts'
import { RunMoves, outOf, type MoveTable } from './run-moves.ts'

/** How a protocol puts a run into a stream of server-sent events. */
export interface RunProtocol<Out> {
  /** What each move is; a new one for each stream, since it may remember what it has said. */
  readonly newTable: () => MoveTable<Out>
  /** What comes first in a stream that continues a run after an event. */
  readonly opening: (state: RunState) => readonly Out[]
  /** What comes last in a stream that ends since the run waits for a command. */
  readonly waiting: (state: RunState) => readonly Out[]
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
  const textOf = (outs: readonly Out[]): string => outs.map(protocol.textOf).join('')
  /** The text that continues the run where a stream before this one ended. */
  const opening = (): string => {
    if (isOpen || moves.state === undefined) return ''
    isOpen = true
    return textOf(protocol.opening(moves.state))
  }
  return followedStream<RuntimeEvent>(
    {
      changes: changesOf(ledger, runId, { after: 0 }),
      textOf: (event) => {
        if (event.seq > after) {
          const opened = opening()
          const text = textOf(moves.next(event).flatMap((move) => outOf(table, move)))
          return opened + text + (event.type === 'run_finished' ? protocol.ending : '')
        }
        // Read again, so that the mapping knows what it has said.
        for (const move of moves.next(event)) outOf(table, move)
        return ''
      },
      isLast: ({ type }) => type === 'run_finished',
      atRest: () => {
        const { state } = moves
        if (state === undefined || !isSuspended(state)) return undefined
        return opening() + textOf(protocol.waiting(state)) + protocol.ending
      },
    },
    host,
  )
}
