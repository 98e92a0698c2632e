import type { Ledger } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import type { CompiledQuery } from 'kysely'
import { onTestFinished } from 'vitest'
import { refreshProjections } from '../../src/projection/refresh.ts'
import { databaseOf } from '../../src/store/store.ts'
import type { Queries, Steps, StoreDatabase } from '../../src/store/database.ts'
import { type Asked, watchedDatabase } from './lent-store.ts'
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
  const before = { ...database }
  const seen = {
    asked: [] as Asked[],
    made: [] as { readonly steps: readonly CompiledQuery[]; readonly result: unknown }[],
    looks: 0,
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
      changedRuns: (after: string) => {
        seen.looks++
        return before.changedRuns(after)
      },
    },
  )
  return seen
}

const columnsOfARun = 12

/** Of each change of rows, how many runs it writes and takes out, and up to which place it tells of events. */
export function stepsIn({ made }: ReturnType<typeof watched>): readonly unknown[] {
  return made.flatMap(({ steps }) => {
    const [moved] = steps
    if (moved?.sql.startsWith('update "projection" set "revision" = $1, "cursor" = $2') !== true) return []
    const values = (start: string): number =>
      steps
        .filter(({ sql }) => sql.startsWith(start))
        .reduce((sum, { parameters }) => sum + parameters.length, 0)
    const runs = values('insert into "run_summary"') / columnsOfARun
    return [[runs, values('delete from "run_summary"'), moved.parameters[1]]]
  })
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
