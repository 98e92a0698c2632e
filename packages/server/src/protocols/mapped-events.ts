import type { RuntimeEvent } from '@tallystick/core'
import { Observable } from 'rxjs'
import { RunMoves, outOf, type MoveTable } from './run-moves.ts'

/** Maps the events of a run, from its first: each to what its moves are in the protocol. */
export function mappedEvents<Out>(
  events$: Observable<RuntimeEvent>,
  newTable: () => MoveTable<Out>,
): Observable<Out> {
  return new Observable((subscriber) => {
    const [moves, table] = [new RunMoves(), newTable()]
    return events$.subscribe({
      next: (event) => {
        for (const move of moves.next(event)) for (const out of outOf(table, move)) subscriber.next(out)
      },
      error: (error: unknown) => subscriber.error(error),
      complete: () => subscriber.complete(),
    })
  })
}
