import type { RunId } from '@tallystick/core'
import {
  commitTo,
  firstRemoval,
  type ImportNote,
  linkRemovals,
  type RemovalLink,
  type RemovalRequest,
  sealRun,
} from '../format/chain.ts'
import { dropRunRow } from '../projection/projections.ts'
import { perform, type Queries, runColumns, type RunRow, type Steps } from './database.ts'

/** Notes once that an import brings a run. */
export function* noteImport(queries: Queries, note: ImportNote): Steps<void> {
  const { db } = queries
  const known = db.selectFrom('removal').select('pos').where('run_id', '=', note.runId)
  if ((yield* perform(queries, known.where('kind', '=', 'imported').limit(1))).length > 0) return
  for (let added: readonly unknown[] = []; added.length === 0;) {
    const rows = linkRemovals(yield* readLastLink(queries), [note])
    // Where another transaction has taken the place, the note comes after what that has written.
    const insert = db.insertInto('removal').values(rows)
    added = yield* perform(queries, insert.onConflict((on) => on.doNothing()).returning('pos'))
  }
}

function* readLastLink(queries: Queries): Steps<RemovalLink> {
  const links = queries.db.selectFrom('removal').select(['pos', 'hash']).orderBy('pos', 'desc').limit(1)
  const [last = firstRemoval] = yield* perform<RemovalLink>(queries, links)
  return last
}

/** Removes content within one transaction. Skips what is gone already. Returns how many events lost their content. */
export function* removeContent(queries: Queries, requests: readonly RemovalRequest[]): Steps<number> {
  const { db } = queries
  const present: RemovalRequest[] = []
  for (const request of requests) if (yield* isPresent(queries, request)) present.push(request)
  for (const row of linkRemovals(yield* readLastLink(queries), present))
    yield* perform(queries, db.insertInto('removal').values(row))
  let removed = 0
  for (const request of present) {
    const { runId, seq } = request
    if ('body' in request) {
      yield* replaceBody(queries, runId, seq, request.body)
      removed++
    } else removed += yield* dropRun(queries, runId)
  }
  for (const runId of new Set(present.map((request) => request.runId))) {
    // Taken commands, and projections of the run, may hold the removed content.
    yield* perform(
      queries,
      db
        .updateTable('inbox')
        .set({ command: '' })
        .where('run_id', '=', runId)
        .where('taken_seq', 'is not', null)
        .where('command', '<>', ''),
    )
    yield* forgetProjections(queries, runId)
  }
  return removed
}

function* isPresent(queries: Queries, request: RemovalRequest): Steps<boolean> {
  const { runId, seq } = request
  if (!('body' in request)) return (yield* lockRun(queries, runId)) !== undefined
  const rows = yield* perform(
    queries,
    queries.db
      .selectFrom('event')
      .select('pos')
      .where('run_id', '=', runId)
      .where('seq', '=', seq)
      .where('commitment', 'is', null),
  )
  return rows.length > 0
}

/** Reads the row of a run, which must not change until the transaction ends. In SQLite no other connection writes then. */
function* lockRun(queries: Queries, runId: RunId): Steps<RunRow | undefined> {
  const run = queries.db.selectFrom('run').select(runColumns).where('run_id', '=', runId)
  const [row] = yield* perform<RunRow>(queries, queries.isPostgres ? run.forUpdate() : run)
  return row
}

function* replaceBody(queries: Queries, runId: RunId, seq: number, body: string): Steps<void> {
  const { db } = queries
  const [row] = yield* perform(
    queries,
    db
      .selectFrom('event')
      .select(['salt', 'body', 'type'])
      .where('run_id', '=', runId)
      .where('seq', '=', seq),
  )
  if (row === undefined) return
  const commitment = commitTo(row.salt as string, row.body)
  yield* perform(
    queries,
    db
      .updateTable('event')
      .set({ body, salt: null, commitment })
      .where('run_id', '=', runId)
      .where('seq', '=', seq),
  )
  if (row.type !== 'history_carried' || seq !== 2) return
  const run = yield* lockRun(queries, runId)
  if (run?.history == null) return
  const seal = sealRun({ ...run, history: null })
  yield* perform(queries, db.updateTable('run').set({ history: null, seal }).where('run_id', '=', runId))
  yield* deleteUnused(queries, run.history)
}

/** Messages that no other run begins with go. */
function* deleteUnused(queries: Queries, name: string): Steps<void> {
  // Messages that came only before this one are unused then.
  for (let next: string | null | undefined = name; next != null;) {
    const digest: string = next
    const [deleted]: readonly { readonly before: string | null }[] = yield* perform(
      queries,
      queries.db
        .deleteFrom('history')
        .where('digest', '=', digest)
        .where((of) => of.not(of.exists(of.selectFrom('run').select('pos').where('history', '=', digest))))
        .where((of) =>
          of.not(
            of.exists(
              of.selectFrom('history as later').select('later.digest').where('later.before', '=', digest),
            ),
          ),
        )
        .returning('before'),
    )
    next = deleted?.before
  }
}

function* dropRun(queries: Queries, runId: RunId): Steps<number> {
  const run = yield* lockRun(queries, runId)
  for (const table of ['inbox', 'event', 'run'] as const)
    yield* perform(queries, queries.db.deleteFrom(table).where('run_id', '=', runId))
  if (run?.history != null) yield* deleteUnused(queries, run.history)
  return run?.head_seq ?? 0
}

/**
 * Deletes the snapshots of a run and its row in `run_summary`, which the next reader makes again. A fold or a projection of the
 * run that is under way can write no removed content.
 */
export function* forgetProjections(queries: Queries, runId: RunId): Steps<void> {
  const { db, sql } = queries
  // First, since every writer of projections begins with this row too: so no two wait for each other.
  yield* perform(queries, db.updateTable('projection').set({ revision: sql<number>`revision + 1` }))
  yield* perform(queries, db.deleteFrom('snapshot').where('run_id', '=', runId))
  yield* dropRunRow(queries, runId)
}
