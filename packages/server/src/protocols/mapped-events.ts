import type { RuntimeEvent } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import { Observable } from 'rxjs'
import { agUiTable, type AgUiEvent, type AgUiNames } from './ag-ui-events.ts'
import { requireEvents } from './require-events.ts'
import { RunMoves, outOf, type MoveTable } from './run-moves.ts'
import { uiMessageTable, type UiMessageChunk } from './ui-message-chunks.ts'

const { anyObject, anyText, fields, listOf, maybe } = option

const agUiNames = fields<AgUiNames>({
  threadId: maybe(anyText),
  runId: maybe(anyText),
  messages: maybe(listOf(anyObject)),
})

/** Maps the events of a run, from its first, to chunks of the AI SDK's UI message stream. */
export function toUiMessages(events$: Observable<RuntimeEvent>): Observable<UiMessageChunk> {
  requireEvents('toUiMessages', events$)
  return mappedEvents(events$, () => uiMessageTable)
}

/** Maps the events of a run, from its first, to events of AG-UI. */
export function toAgUi(events$: Observable<RuntimeEvent>, names: AgUiNames = {}): Observable<AgUiEvent> {
  requireEvents('toAgUi', events$)
  requireOptions('toAgUi', agUiNames, names)
  return mappedEvents(events$, () => agUiTable(names))
}

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
