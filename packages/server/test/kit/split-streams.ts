import type { RunState, RuntimeEvent } from '@tallystick/core'
import { listDeferredCalls, listPendingApprovals } from '@tallystick/core/machine'
import { mapMove, RunMoves, type MoveTable, type RunMove, type RunWaits } from '../../src/stream/run-moves.ts'

/** What a run waits for in itself. */
function ownWaits(state: RunState): RunWaits {
  const { limit = 'maxTurns' } = state.metLimit ?? {}
  return { approvals: listPendingApprovals(state), deferred: listDeferredCalls(state), limit }
}

/** The stream that a reader gets of a run up to an event, and the one that continues it to the end of the events. */
export function splitStreams<Out>(
  newTable: () => MoveTable<Out>,
  events: readonly RuntimeEvent[],
  cut: number,
): readonly [before: readonly Out[], after: readonly Out[]] {
  const streamOf = (after: number, until: number): readonly Out[] => {
    const [moves, table] = [new RunMoves(), newTable()]
    const outs = (of: readonly RunMove[]): readonly Out[] => of.flatMap((move) => mapMove(table, move))
    for (const event of events.slice(0, after)) outs(moves.next(event))
    const opening = after === 0 ? [] : outs(moves.reopen())
    const between = events.slice(after, until).flatMap((event) => outs(moves.next(event)))
    const rest = moves.isWaiting && moves.state ? moves.movesAtWait(ownWaits(moves.state)) : []
    return [...opening, ...between, ...outs(rest)]
  }
  return [streamOf(0, cut), streamOf(cut, events.length)]
}

/** The numbers of events at which a run waits for a command, and has not ended: there a client sends its answer. */
export function waitingPlaces(events: readonly RuntimeEvent[]): readonly number[] {
  const moves = new RunMoves()
  return events.flatMap((event, index) => {
    moves.next(event)
    return moves.isWaiting && index + 1 < events.length ? [index + 1] : []
  })
}
