import { option, requireLedger, requireOptions } from '@tallystick/core/kit'
import { TallystickError, type Ledger, type RunId } from '@tallystick/core'
import type { EventOf } from '@tallystick/core/vocabulary'
import { isPlain } from '../../format/body.ts'
import { readFound } from '../../store/find-events.ts'
import { projectionDatabaseOf } from '../tables/projection-database.ts'
import { firstInputRows } from './summary-rows.ts'

/** So many runs are looked up at once. */
const runsAtOnce = 64

const runIdList = option.listOf(option.anyText)

type Input = EventOf<'input_received'>

/**
 * Returns the event with the first input of each of some runs, looked up for many runs at once where the store allows.
 * Leaves out runs without one, and runs of which it cannot be read.
 */
export async function firstInputs(
  ledger: Ledger,
  runIds: readonly RunId[],
): Promise<ReadonlyMap<RunId, Input>> {
  requireLedger('firstInputs', ledger)
  requireOptions('firstInputs', runIdList, runIds, 'the list of run ids')
  const found = new Map<RunId, Input>()
  for (let index = 0; index < runIds.length; index += runsAtOnce) {
    const some = runIds.slice(index, index + runsAtOnce)
    const left = await lookUp(ledger, some, found)
    for (const runId of left) {
      const event = await firstFound(ledger, runId)
      if (event) found.set(runId, event)
    }
  }
  return found
}

/** Adds what can be looked up to `found`, and returns the runs that have to be searched. */
async function lookUp(
  ledger: Ledger,
  runIds: readonly RunId[],
  found: Map<RunId, Input>,
): Promise<readonly RunId[]> {
  const database = projectionDatabaseOf(ledger)
  if (database === undefined) return runIds
  try {
    const left: RunId[] = []
    for (const row of await firstInputRows(database, runIds)) {
      const runId = row.run_id as RunId
      // What needs more than its own text to be read, a search brings along.
      if (!isPlain(row)) left.push(runId)
      else for (const event of soundEvents(() => [readFound(row)])) found.set(runId, event as Input)
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
    if (error instanceof TallystickError) return []
    throw error
  }
}

async function firstFound(ledger: Ledger, runId: RunId): Promise<Input | undefined> {
  try {
    for await (const event of ledger.find({ runId, types: ['input_received'] })) return event as Input
  } catch (error) {
    if (!(error instanceof TallystickError)) throw error
  }
  return undefined
}
