import { TallystickError, type Ledger, type RunId } from '@tallystick/core'
import type { EventOf, EventType } from '@tallystick/core/vocabulary'
import { isPlain } from '../../content/event/stored-body.ts'
import { checkedEvents } from '../../read/find-events.ts'
import { projectionDatabaseOf } from '../tables/projection-database.ts'
import { firstRows } from './telling-rows.ts'

/** So many runs are looked up at once. */
const runsAtOnce = 64

/**
 * The first event of a type of each of some runs, looked up for many runs at once where the store allows. Leaves out
 * runs without such an event, and those of which it cannot be read.
 */
export async function firstEvents<T extends EventType>(
  ledger: Ledger,
  runIds: readonly RunId[],
  type: T,
): Promise<ReadonlyMap<RunId, EventOf<T>>> {
  const found = new Map<RunId, EventOf<T>>()
  for (let index = 0; index < runIds.length; index += runsAtOnce) {
    const some = runIds.slice(index, index + runsAtOnce)
    const left = await lookUp(ledger, some, type, found)
    for (const runId of left) {
      const event = await firstFound(ledger, runId, type)
      if (event) found.set(runId, event)
    }
  }
  return found
}

/** Adds what can be looked up to `found`, and returns the runs that have to be searched. */
async function lookUp<T extends EventType>(
  ledger: Ledger,
  runIds: readonly RunId[],
  type: T,
  found: Map<RunId, EventOf<T>>,
): Promise<readonly RunId[]> {
  const database = projectionDatabaseOf(ledger)
  if (database === undefined) return runIds
  try {
    const left: RunId[] = []
    for (const row of await firstRows(database, runIds, type)) {
      const runId = row.run_id as RunId
      // What needs more than its own bytes to be read, a search brings along.
      if (row.first_seq !== null || row.body === null || !isPlain(row.body)) left.push(runId)
      else for (const event of soundEvents(() => checkedEvents(row))) found.set(runId, event as EventOf<T>)
    }
    return left
  } catch (error) {
    if (error instanceof TallystickError) return runIds
    throw error
  }
}

function soundEvents<Events>(read: () => readonly Events[]): readonly Events[] {
  try {
    return read()
  } catch (error) {
    // Damaged: verify names the place.
    if (error instanceof TallystickError || error instanceof SyntaxError) return []
    throw error
  }
}

async function firstFound<T extends EventType>(
  ledger: Ledger,
  runId: RunId,
  type: T,
): Promise<EventOf<T> | undefined> {
  try {
    for await (const event of ledger.find({ runId, types: [type] })) return event as EventOf<T>
  } catch (error) {
    if (!(error instanceof TallystickError)) throw error
  }
  return undefined
}
