import type { RunId } from '@tallystick/core'
import {
  commitTo,
  firstRemoval,
  linkRemovals,
  removalColumns,
  type RemovalLink,
  type RemovalRequest,
  sealRun,
} from '../format/chain.ts'
import type { EventRow } from '../format/event-row.ts'
import { type Dialect, runColumns } from './database.ts'
import type { RunRow } from './records.ts'

/** A statement that a transaction is to carry out; what it answers comes back into the generator. */
export interface RemovalStep {
  readonly text: string
  readonly values: readonly unknown[]
}

type Steps<T> = Generator<RemovalStep, T, readonly unknown[]>

function* ask<Row>(text: string, ...values: readonly unknown[]): Steps<readonly Row[]> {
  return (yield { text, values }) as readonly Row[]
}

/**
 * Removes content, statement by statement, within one transaction of a store: SQLite carries it out at once, Postgres over
 * a connection. Skips what is gone already. Returns how many events lost their content.
 */
export function* removeContent(requests: readonly RemovalRequest[], dialect: Dialect): Steps<number> {
  const present: RemovalRequest[] = []
  for (const request of requests) if (yield* isPresent(request, dialect)) present.push(request)
  const [last] = yield* ask<RemovalLink>('select pos, hash from @.removal order by pos desc limit 1')
  const places = removalColumns.map((_column, index) => `$${index + 1}`).join(', ')
  for (const row of linkRemovals(last ?? firstRemoval, present)) {
    const values = removalColumns.map((column) => row[column])
    yield* ask(`insert into @.removal (${removalColumns.join(', ')}) values (${places})`, ...values)
  }
  let removed = 0
  for (const request of present) {
    const { runId, seq } = request
    if ('body' in request) {
      yield* replaceBody(runId, seq, request.body, dialect)
      removed++
    } else removed += yield* dropRun(runId, dialect)
  }
  for (const runId of new Set(present.map((request) => request.runId))) yield* forget(runId)
  return removed
}

function* isPresent(request: RemovalRequest, { forUpdate }: Dialect): Steps<boolean> {
  const { runId, seq } = request
  const rows =
    'body' in request
      ? yield* ask('select 1 from @.event where run_id = $1 and seq = $2 and commitment is null', runId, seq)
      : yield* ask(`select 1 from @.run where run_id = $1 ${forUpdate}`, runId)
  return rows.length > 0
}

function* replaceBody(runId: RunId, seq: number, body: string, dialect: Dialect): Steps<void> {
  const [row] = yield* ask<Pick<EventRow, 'salt' | 'body' | 'type'>>(
    'select salt, body, type from @.event where run_id = $1 and seq = $2',
    ...[runId, seq],
  )
  if (row === undefined) return
  yield* ask(
    'update @.event set body = $3, salt = null, commitment = $4 where run_id = $1 and seq = $2',
    ...[runId, seq, body, commitTo(row.salt as string, row.body)],
  )
  if (row.type === 'history_carried' && seq === 2) yield* releaseHistory(runId, dialect)
}

/** Messages that no other run begins with go. */
function* releaseHistory(runId: RunId, { forUpdate }: Dialect): Steps<void> {
  const [run] = yield* ask<RunRow>(`select ${runColumns} from @.run where run_id = $1 ${forUpdate}`, runId)
  if (run?.history == null) return
  const seal = sealRun({ ...run, history: null })
  yield* ask('update @.run set history = null, seal = $2 where run_id = $1', runId, seal)
  yield* deleteUnused(run.history)
}

function* deleteUnused(name: string): Steps<void> {
  // Messages that came only before this one are unused then.
  for (let next: string | null | undefined = name; next != null;) {
    const [deleted]: readonly { readonly before: string | null }[] = yield* ask(
      `delete from @.history where digest = $1 and not exists (select 1 from @.run where history = $1)
        and not exists (select 1 from @.history as later where later.before = $1) returning before`,
      next,
    )
    next = deleted?.before
  }
}

function* dropRun(runId: RunId, { forUpdate }: Dialect): Steps<number> {
  const [run] = yield* ask<RunRow>(`select ${runColumns} from @.run where run_id = $1 ${forUpdate}`, runId)
  for (const table of ['inbox', 'event', 'run']) yield* ask(`delete from @.${table} where run_id = $1`, runId)
  if (run?.history != null) yield* deleteUnused(run.history)
  return run?.head_seq ?? 0
}

/** Taken commands are blanked, and projections of the run are made anew: both may hold the removed content. */
function* forget(runId: RunId): Steps<void> {
  yield* ask(
    `update @.inbox set command = '' where run_id = $1 and taken_seq is not null and command <> ''`,
    runId,
  )
  yield* forgetProjections(runId)
}

/**
 * Deletes the snapshots of a run, and lets the next reader make its row in `run_summary` anew. A fold or a projection of the run
 * that is under way can write no removed content.
 */
export function* forgetProjections(runId: RunId): Steps<void> {
  // First, since every writer of projections begins with this row too: so no two wait for each other.
  yield* ask('update @.projection set revision = revision + 1')
  yield* ask('delete from @.snapshot where run_id = $1', runId)
  yield* ask('update @.run_summary set summary = null, notes = null where run_id = $1', runId)
}
