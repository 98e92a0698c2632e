import { LedgerDamagedError, type RunId } from '@tallystick/core'
import type { Selectable } from 'kysely'
import type { RunCell } from '../../record/chain.ts'
import { sessionOf } from '../../record/run-record.ts'
import { isRunId, namedRun } from '../../record/stored-ids.ts'
import type { ReadQueries } from './queries.ts'
import type { RunTable } from '../../record/tables.ts'

/** The row of a run, where there is one. */
export function runRow(reads: ReadQueries, runId: RunId): Selectable<RunTable> | undefined {
  const row = isRunId(runId) ? reads.run.get({ runId }) : undefined
  return row && soundRow(row)
}

/** The row, if it holds what its columns hold; damaged bytes may be read as anything. */
export function soundRow<Row extends Selectable<RunTable>>(row: Row): Row {
  const { pos, head_seq, epoch, head_hash, seal, session_id, session_place } = row
  const isSound =
    [pos, head_seq, epoch].every(Number.isSafeInteger) &&
    [head_hash, seal].every((value: unknown) => value instanceof Uint8Array) &&
    (session_id === null ? session_place === null : Number.isSafeInteger(session_place))
  if (isSound) return row
  throw damaged(row)
}

/** What the row digest covers. */
export function cellOf(runId: RunId, row: Selectable<RunTable>): RunCell {
  const { pos, head_seq, head_hash, epoch } = row
  return { runId, pos, headSeq: head_seq, headHash: head_hash, epoch, session: sessionOf(row) }
}

function damaged(row: Selectable<RunTable>): LedgerDamagedError {
  return new LedgerDamagedError(
    `The row of run ${namedRun(row.run_id)} is damaged: it does not hold what its columns hold. What it says cannot be ` +
      'trusted. Run verify on the ledger, and restore a copy.',
  )
}
