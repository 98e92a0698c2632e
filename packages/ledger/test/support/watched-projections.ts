import type { Ledger } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { onTestFinished } from 'vitest'
import { refreshProjections } from '../../src/projection/refresh.ts'
import { databaseOf } from '../../src/store/store.ts'
import type { ChangePart, StoreDatabase } from '../../src/store/database.ts'
import { tamper, withRaw } from './raw-database.ts'
import { emptyLedgerFile } from './temporary-folder.ts'

/** A ledger file, and its projections. */
export function openedProjections() {
  const path = emptyLedgerFile()
  const open = (readOnly = false): Ledger => {
    const ledger = sqliteLedger(path, { readOnly })
    onTestFinished(() => ledger.close())
    return ledger
  }
  const ledger = open()
  const database = databaseOf(ledger) as StoreDatabase
  const received: number[] = []
  return {
    ...{ path, ledger, database, received },
    reader: () => open(true),
    refresh: () => refreshProjections(ledger, database, (events) => received.push(events)),
    tamper: (statement: string) => tamper(path, (file) => void file.exec(statement)),
    rows: (query: string) => withRaw(path, (file) => file.prepare<[], Record<string, unknown>>(query).all()),
  }
}

/** What is asked of the projections of a ledger, and changed in them, from here on. */
export function watched(database: StoreDatabase) {
  const [ask, change] = [database.ask.bind(database), database.change.bind(database)]
  const changedRuns = database.changedRuns.bind(database)
  const seen = {
    asked: [] as { readonly text: string; readonly values: readonly unknown[] }[],
    made: [] as {
      readonly parts: readonly ChangePart[]
      readonly values: readonly unknown[]
      readonly isDone: boolean
    }[],
    looks: 0,
  }
  Object.assign(database, {
    ask: (text: string, values: readonly unknown[] = []) => {
      seen.asked.push({ text, values })
      return ask(text, values)
    },
    change: async (parts: readonly ChangePart[], values: readonly unknown[]) => {
      const isDone = await change(parts, values)
      seen.made.push({ parts, values, isDone })
      return isDone
    },
    changedRuns: (after: string) => {
      seen.looks++
      return changedRuns(after)
    },
  })
  return seen
}

/** Of each change of rows, how many runs it writes and takes out, and up to which place it tells of events. */
export function stepsIn({ made }: ReturnType<typeof watched>): readonly unknown[] {
  return made
    .filter(({ parts }) => parts[0]?.name === 'moved')
    .map(({ values: [, cursor, runs, gone] }) => [
      (JSON.parse(String(runs)) as unknown[]).length,
      (JSON.parse(String(gone)) as unknown[]).length,
      cursor,
    ])
}

/** Begins runs of two events each. */
export async function begin(ledger: Ledger, from: number, to: number): Promise<void> {
  for (let ordinal = from; ordinal <= to; ordinal++) {
    const runId = sampleRunId(ordinal)
    const { run_started: started, input_received: input } = everyFact(runId)
    const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = started
    const events = stamped(runId, [start, input])
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  }
}

/** Rows of runs that are not there, whose content was removed. */
export function addStale(path: string, from: number, to: number): void {
  tamper(path, (file) => {
    const add = file.prepare(
      `insert into run_summary values (?, ?, 1, '', 'done', null, 0, 0, '[]', '{"spending":[]}', null, null)`,
    )
    file.transaction(() => {
      for (let ordinal = from; ordinal <= to; ordinal++) add.run(10_000 + ordinal, sampleRunId(ordinal))
    })()
  })
}
