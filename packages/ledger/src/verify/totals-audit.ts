import type { Ledger } from '@tallystick/core'
import { fault, type Fault } from '../format/event-row.ts'
import { CorruptRowError, orElse } from '../projection/refresh.ts'
import { amountColumns } from '../projection/run-accumulator.ts'
import {
  type SessionChange,
  type SpendingChange,
  parseRunRow,
  type StoredRunRow,
  TotalsAccumulator,
} from '../projection/stored-run.ts'
import { ProjectionTables, sessionColumns, summaryColumns } from '../projection/tables.ts'
import type { StoreDatabase } from '../store/database.ts'
import { databaseOf } from '../store/store.ts'

const rowsPerBatch = 256

/** How often the audit of all totals is repeated after a concurrent change. */
const maxTries = 3

/** The first of the totals that is not what the projections of runs come to; those are compared with their events. */
export async function findTotalsFault(ledger: Ledger): Promise<Fault | undefined> {
  const database = databaseOf(ledger)
  if (database === undefined) return undefined
  const tables = new ProjectionTables(database)
  return await orElse(undefined, async () => {
    for (let tries = 0; tries < maxTries; tries++) {
      if ((await tables.cursorOfThisCode()) === undefined) return undefined
      const { revision } = await tables.state()
      const found =
        (await findStrayFault(database)) ??
        (await findSpendingFault(tables)) ??
        (await findSessionsFault(database))
      if (found === undefined || (await tables.state()).revision === revision) return found
    }
    return undefined
  })
}

async function findStrayFault({ query }: StoreDatabase): Promise<Fault | undefined> {
  const [found] = await query(({ db, sql }) =>
    db
      .selectFrom('run_summary')
      .select(sql<number>`count(*)`.as('rows'))
      .where('summary', 'is not', null)
      .where((of) =>
        of.not(
          of.exists(of.selectFrom('run').select('run.pos').whereRef('run.run_id', '=', 'run_summary.run_id')),
        ),
      ),
  )
  const stray = found?.rows ?? 0
  return stray === 0 ? undefined : fault('projections of runs that are not there', 0, stray)
}

async function findSpendingFault(tables: ProjectionTables): Promise<Fault | undefined> {
  const totals = new TotalsAccumulator()
  for (let beforePos = Number.MAX_SAFE_INTEGER; ;) {
    const batch = await tables.batch({ beforePos, limit: rowsPerBatch })
    for (const row of batch) totals.add(parseSoundRow(row))
    const last = batch.at(-1)
    if (last === undefined) break
    beforePos = last.pos
  }
  const due = new Map(totals.change.spending.map((line) => [formatKey(line), formatSums(line)]))
  const hours = await tables.database.query(({ db }) =>
    db
      .selectFrom('spending')
      .selectAll()
      .orderBy('hour')
      .orderBy('agent')
      .orderBy('provider')
      .orderBy('api')
      .orderBy('model_id'),
  )
  for (const row of hours) {
    const key = formatKey(row)
    const expected = due.get(key) ?? formatSums(undefined)
    if (formatSums(row) !== expected) return fault(`spending of ${key}`, expected, formatSums(row))
    due.delete(key)
  }
  const [missing] = due
  return missing && fault(`spending of ${missing[0]}`, missing[1], 'none')
}

function formatKey({ hour, agent, provider, api, model_id }: Omit<SpendingChange, 'calls'>): string {
  return [hour, agent, provider, api, model_id].join(' ')
}

/** All that a line counts, on one line. */
function formatSums(line: object | undefined): string {
  const counted = ['calls', 'runs', 'turns', 'tool_calls', 'started_at', 'last_at', ...amountColumns]
  const values = (line ?? {}) as Readonly<Record<string, number>>
  return counted.map((column) => values[column] ?? 0).join(' ')
}

/** One session after the other, so that no more than one is held. */
async function findSessionsFault(database: StoreDatabase): Promise<Fault | undefined> {
  let after = ''
  for (;;) {
    const from = after
    const batch = await database.query(({ db }) =>
      db
        .selectFrom('session_summary')
        .select(sessionColumns)
        .where('session_id', '>', from)
        .where('runs', '>', 0)
        .orderBy('session_id')
        .limit(rowsPerBatch),
    )
    for (const session of batch) {
      const found = await findSessionFault(database, session)
      if (found) return found
      after = session.session_id
    }
    if (batch.length < rowsPerBatch) break
  }
  const [found] = await database.query(({ db, sql }) =>
    db
      .selectFrom('run_summary')
      .select(sql<number>`count(*)`.as('rows'))
      .where('session_id', 'is not', null)
      .where((of) =>
        of.not(
          of.exists(
            of
              .selectFrom('session_summary as session')
              .select('session.runs')
              .whereRef('session.session_id', '=', 'run_summary.session_id')
              .where('session.runs', '>', 0),
          ),
        ),
      ),
  )
  const unsummed = found?.rows ?? 0
  return unsummed === 0 ? undefined : fault('sessions of runs', 'a row each', `${unsummed} runs without`)
}

async function findSessionFault(database: StoreDatabase, session: SessionChange): Promise<Fault | undefined> {
  const totals = new TotalsAccumulator()
  for (let afterPos = 0; ;) {
    const from = afterPos
    const batch = await database.query(({ db }) =>
      db
        .selectFrom('run_summary')
        .select(summaryColumns)
        .where('session_id', '=', session.session_id)
        .where('pos', '>', from)
        .orderBy('pos')
        .limit(rowsPerBatch),
    )
    for (const row of batch) totals.add(parseSoundRow(row))
    const last = batch.at(-1)
    if (last === undefined) break
    afterPos = last.pos
  }
  const [due] = totals.change.sessions
  const [expected, found] = [formatSums(due), formatSums(session)]
  return expected === found ? undefined : fault(`totals of session ${session.session_id}`, expected, found)
}

function parseSoundRow(row: StoredRunRow): NonNullable<ReturnType<typeof parseRunRow>> {
  const stored = parseRunRow(row)
  if (stored === undefined) throw new CorruptRowError(row.run_id)
  return stored
}
