import type { RunId } from '@tallystick/core'
import { firstRemoval, isRemovalIntact, type RemovalLink } from '../format/chain.ts'
import { type EventRow, fault, type Fault, isRunId, outOfOrder } from '../format/event-row.ts'
import { type HistoryRow, isHistoryRow } from '../format/history.ts'
import { eventColumnsText, runColumns, type StoreDatabase } from '../store/database.ts'
import { eachRemoval, type EventRange, type RunRow } from '../store/records.ts'
import type { Store } from '../store/store.ts'

/* The rows of a store, unchecked, as `verify` and checkpoints read them beneath the port. */

/** A run in the store at one moment. */
export interface StoredRun {
  /** Absent where there are events and no row. */
  readonly row?: RunRow
  /** How many events there are under the id of the run. */
  readonly events: number
  readonly lastSeq: number
}

/** `undefined` if the store has nothing of the run. */
export async function readStoredRun({ ask }: StoreDatabase, runId: RunId): Promise<StoredRun | undefined> {
  if (!isRunId(runId)) return undefined
  // In one statement, and so at one moment.
  const [found] = await ask<
    { readonly events: number; readonly last_seq: number | null } & {
      readonly [Name in keyof RunRow]: RunRow[Name] | null
    }
  >(
    `select extent.*, ${runColumns} from (
      select count(*) as events, max(seq) as last_seq from @.event where run_id = $1
    ) as extent left join @.run on run_id = $1`,
    [runId],
  )
  if (found === undefined) return undefined
  const { events, last_seq: lastSeq, ...row } = found
  if (row.run_id === null && events === 0) return undefined
  return { events, lastSeq: lastSeq ?? 0, ...(row.run_id !== null && { row: row as RunRow }) }
}

/** A row of an event, with the digest of the removal that is on record for it. */
export type AuditedRow = EventRow & { readonly removal: string | null }

/** The first rows of a range. */
export async function readAuditedRows(
  { askBatch }: StoreDatabase,
  { runId, fromSeq, toSeq }: EventRange,
): Promise<readonly AuditedRow[]> {
  if (!isRunId(runId)) return []
  const rows = await askBatch<AuditedRow>(
    `select ${eventColumnsText}, (
        select digest from @.removal where removal.run_id = event.run_id and removal.seq = event.seq and kind <> 'dropped' limit 1
      ) as removal
      from @.event where run_id = $1 and seq >= $2 and seq <= $3`,
    ['seq'],
    [runId, fromSeq, toSeq],
  )
  let last = fromSeq
  for (const { seq } of rows) {
    if (seq < last) throw outOfOrder(`the events of run ${runId}`)
    last = seq
  }
  return rows
}

/** Runs without a row that one audit names; more are as bad as that. */
const maxOrphans = 1000

/** Runs that have events and that no list reaches, as without a row, by what stands in the column of ids. */
export async function findOrphans({ askPatiently }: StoreDatabase): Promise<readonly string[]> {
  const rows = await askPatiently<{ readonly run_id: string }>(
    `select distinct run_id from @.event
      where run_id not in (select run_id from @.run where pos < ${Number.MAX_SAFE_INTEGER}) limit ${maxOrphans}`,
  )
  return rows.map(({ run_id }) => run_id)
}

/** The first fault of the store around its runs, and how many runs were dropped. */
export async function auditStore(
  store: Store,
): Promise<{ readonly broken?: Fault; readonly droppedRuns: number }> {
  const { database } = store
  let last: RemovalLink = firstRemoval
  let droppedRuns = 0
  // Removals are chained like events, so that none can be changed or left out unseen.
  for await (const row of eachRemoval(database)) {
    if (row.pos !== last.pos + 1) return { broken: fault('removal', last.pos + 1, row.pos), droppedRuns }
    if (!isRemovalIntact(last, row))
      return { broken: fault(`removal ${row.pos}`, 'as it was written', 'another'), droppedRuns }
    if (row.kind === 'dropped') droppedRuns++
    last = row
  }
  const broken =
    (await store.findFault()) ?? (await findStrayFault(database)) ?? (await findHistoryFault(database))
  return { ...(broken && { broken }), droppedRuns }
}

/** Rows that should not exist, by the name of their fault. */
const strays: readonly (readonly [what: string, text: string])[] = [
  [
    'inbox entries that fit no run',
    `select 1 from @.inbox where not exists (
      select 1 from @.run where run.run_id = inbox.run_id and coalesce(inbox.taken_seq, 1) between 1 and run.head_seq)`,
  ],
  [
    'removals of no event',
    `select 1 from @.removal where pos < 1 or case kind when 'dropped' then run_id in (select run_id from @.run)
      else not exists (select 1 from @.event where event.run_id = removal.run_id and event.seq = removal.seq and commitment is not null)
        and not exists (select 1 from @.removal as dropped where dropped.run_id = removal.run_id and dropped.kind = 'dropped') end`,
  ],
  [
    'messages that no run begins with',
    `select 1 from @.history where digest not in (select history from @.run where history is not null)
      and digest not in (select before from @.history where before is not null)`,
  ],
  [
    'references to messages that are not there',
    `select 1 from (select history as name from @.run union all select before from @.history) as named
      where name is not null and name not in (select digest from @.history)`,
  ],
]

async function findStrayFault({ askPatiently }: StoreDatabase): Promise<Fault | undefined> {
  for (const [what, text] of strays) {
    const [found] = await askPatiently<{ readonly count: number }>(
      `select count(*) as count from (${text}) as stray`,
    )
    if (found && found.count > 0) return fault(what, 0, found.count)
  }
  return undefined
}

const messagesPerBatch = 256

async function findHistoryFault({ askPatiently }: StoreDatabase): Promise<Fault | undefined> {
  for (let after = ''; ;) {
    const rows = await askPatiently<HistoryRow>(
      `select digest, before, message from @.history where digest > $1 order by digest limit ${messagesPerBatch}`,
      [after],
    )
    const damaged = rows.find((row) => !isHistoryRow(row))
    if (damaged) return fault('history', 'the message of its digest', damaged.digest)
    const last = rows.at(-1)
    if (last === undefined) return undefined
    after = last.digest
  }
}
