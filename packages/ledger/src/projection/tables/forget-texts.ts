import type { ProjectionDialect } from './projection-database.ts'

/**
 * The statements that forget what was projected from a run, to be carried out one after the other in the transaction that
 * takes something of the run away: its snapshots go, and its projection is made anew by whoever asks next. Whoever folds
 * or projects the run at the same moment can write nothing of that any more. `runId` is how each statement names the run.
 */
export function forgetTexts({ table }: Pick<ProjectionDialect, 'table'>, runId: string): readonly string[] {
  return [
    // First, as whoever writes there begins with this row too: so nobody waits for each other.
    `update ${table('projection')} set revision = revision + 1 where cast(${runId} as text) is not null`,
    `delete from ${table('snapshot')} where run_id = ${runId}`,
    `update ${table('run_summary')} set summary = null, notes = null where run_id = ${runId}`,
  ]
}
