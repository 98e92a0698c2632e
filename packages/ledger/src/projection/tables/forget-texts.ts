import type { ProjectionDialect } from './projection-database.ts'

/**
 * Returns the statements that forget the projections of a run, to run one after the other in the transaction that
 * removes content of the run: its snapshots are deleted, and the next reader makes its projection anew. A concurrent
 * fold or projection of the run can write no removed content. `runId` is the SQL expression for the run in each
 * statement.
 */
export function forgetTexts({ table }: Pick<ProjectionDialect, 'table'>, runId: string): readonly string[] {
  return [
    // First, since every writer of projections begins with this row too: so no two wait for each other.
    `update ${table('projection')} set revision = revision + 1 where cast(${runId} as text) is not null`,
    `delete from ${table('snapshot')} where run_id = ${runId}`,
    `update ${table('run_summary')} set summary = null, notes = null where run_id = ${runId}`,
  ]
}
