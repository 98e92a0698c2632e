import type { Ledger } from '@tallystick/core'
import { amountColumns } from '../projection/tables/amounts.ts'
import { projectionDatabaseOf } from '../projection/tables/projection-database.ts'
import { fault, type Fault } from '../format/event-row.ts'
import { orElse } from '../projection/refresh/projection-lag.ts'
import { CorruptRowError } from '../projection/refresh/projected-runs.ts'
import { AuditedProjections } from './audited-projections.ts'
import { ProjectionTables, type SessionRow } from '../projection/refresh/projection-tables.ts'
import { storedRun, type StoredRunRow } from '../projection/summary/stored-run.ts'
import { TotalsAccumulator, type SpendingChange } from '../projection/summary/totals-change.ts'

const rowsPerBatch = 256

/** How often the audit of all totals is repeated after a concurrent change. */
const maxTries = 3

/** The first of the totals that is not what the projections of runs come to; those are compared with their events. */
export async function totalsFault(ledger: Ledger): Promise<Fault | undefined> {
  const database = projectionDatabaseOf(ledger)
  if (database === undefined) return undefined
  const tables = new ProjectionTables(database)
  return await orElse(undefined, async () => {
    for (let tries = 0; tries < maxTries; tries++) {
      if ((await tables.cursorOfThisCode()) === undefined) return undefined
      const { revision } = await tables.state()
      const audited = new AuditedProjections(database)
      const found =
        (await strayFault(audited)) ??
        (await spendingFault(tables, audited)) ??
        (await sessionsFault(audited))
      if (found === undefined || (await tables.state()).revision === revision) return found
    }
    return undefined
  })
}

async function strayFault(tables: AuditedProjections): Promise<Fault | undefined> {
  const stray = await tables.strayRows()
  return stray === 0 ? undefined : fault('projections of runs that are not there', 0, String(stray))
}

async function spendingFault(
  tables: ProjectionTables,
  audited: AuditedProjections,
): Promise<Fault | undefined> {
  const totals = new TotalsAccumulator()
  for (let beforePos = Number.MAX_SAFE_INTEGER; ;) {
    const batch = await tables.batch({ beforePos, limit: rowsPerBatch })
    for (const row of batch) totals.add(soundRow(row))
    const last = batch.at(-1)
    if (last === undefined) break
    beforePos = last.pos
  }
  const due = new Map(totals.change.spending.map((line) => [spendingKey(line), sums(line)]))
  for (const row of await audited.hours()) {
    const key = spendingKey(row)
    const expected = due.get(key) ?? sums(undefined)
    if (sums(row) !== expected) return fault(`spending of ${key}`, expected, sums(row))
    due.delete(key)
  }
  const [missing] = due
  return missing && fault(`spending of ${missing[0]}`, missing[1], 'none')
}

function spendingKey({ hour, agent, provider, api, model_id }: Omit<SpendingChange, 'calls'>): string {
  return [hour, agent, provider, api, model_id].join(' ')
}

/** All that a line counts, on one line. */
function sums(line: object | undefined): string {
  const counted = ['calls', 'runs', 'turns', 'tool_calls', 'started_at', 'last_at', ...amountColumns]
  const values = (line ?? {}) as Readonly<Record<string, number>>
  return counted.map((column) => values[column] ?? 0).join(' ')
}

/** One session after the other, so that no more than one is held. */
async function sessionsFault(tables: AuditedProjections): Promise<Fault | undefined> {
  let after = ''
  for (;;) {
    const batch = await tables.sessionsAfter(after, rowsPerBatch)
    for (const session of batch) {
      const found = await sessionFault(tables, session)
      if (found) return found
      after = session.session_id
    }
    if (batch.length < rowsPerBatch) break
  }
  const unsummed = await tables.runsWithoutSession()
  return unsummed === 0 ? undefined : fault('sessions of runs', 'a row each', `${unsummed} runs without`)
}

async function sessionFault(tables: AuditedProjections, session: SessionRow): Promise<Fault | undefined> {
  const totals = new TotalsAccumulator()
  for (let afterPos = 0; ;) {
    const batch = await tables.runsOfSession(session.session_id, afterPos, rowsPerBatch)
    for (const row of batch) totals.add(soundRow(row))
    const last = batch.at(-1)
    if (last === undefined) break
    afterPos = last.pos
  }
  const [due] = totals.change.sessions
  const [expected, found] = [sums(due), sums(session)]
  return expected === found ? undefined : fault(`totals of session ${session.session_id}`, expected, found)
}

function soundRow(row: StoredRunRow): NonNullable<ReturnType<typeof storedRun>> {
  const stored = storedRun(row)
  if (stored === undefined) throw new CorruptRowError(row.run_id)
  return stored
}
