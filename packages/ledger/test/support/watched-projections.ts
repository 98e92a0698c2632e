import type { Ledger } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import type { CompiledQuery } from 'kysely'
import { onTestFinished } from 'vitest'
import { refreshProjections } from '../../src/projection/projections.ts'
import { getDatabase } from '../../src/store/store.ts'
import type { Queries, Steps, StoreDatabase } from '../../src/store/database.ts'
import { type Asked, watchedDatabase } from './lent-store.ts'
import { tamper, withRaw } from './raw-database.ts'
import { emptyLedgerFile } from './temporary-folder.ts'

export function openedProjections() {
  const path = emptyLedgerFile()
  const open = (readOnly = false): Ledger => {
    const ledger = sqliteLedger(path, { readOnly })
    onTestFinished(() => ledger.close())
    return ledger
  }
  const ledger = open()
  const database = getDatabase(ledger) as StoreDatabase
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
  const before = { ...database }
  const seen = {
    asked: [] as Asked[],
    made: [] as { readonly steps: readonly CompiledQuery[]; readonly result: unknown }[],
  }
  Object.assign(
    database,
    watchedDatabase(before, (asked) => seen.asked.push(asked)),
    {
      change: <T>(change: (queries: Queries) => Steps<T>) =>
        before.change(function* (queries) {
          const steps: CompiledQuery[] = []
          const inner = change(queries)
          let next = inner.next([])
          while (!next.done) {
            steps.push(next.value)
            next = inner.next(yield next.value)
          }
          seen.made.push({ steps, result: next.value })
          return next.value
        }),
    },
  )
  return seen
}

const columnsOfARun = 17

/** How many rows each change of rows writes. */
export function writesIn({ made }: ReturnType<typeof watched>): readonly number[] {
  return made.flatMap(({ steps }) =>
    steps
      .filter(({ sql }) => sql.startsWith('insert into "run_summary"'))
      .map(({ parameters }) => parameters.length / columnsOfARun),
  )
}

/** Begins runs of two events each. */
export async function begin(ledger: Ledger, from: number, to: number): Promise<void> {
  for (let ordinal = from; ordinal <= to; ordinal++) {
    const runId = sampleRunId(ordinal)
    const { run_started: started, input_received: input } = sampleFacts(runId)
    const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = started
    const events = stampFacts(runId, [start, input])
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  }
}
