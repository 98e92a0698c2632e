import type { Ledger, RunId } from '@tallystick/core'
import { eventsToFold } from '@tallystick/ledger'
import { withLedger } from '../ledger/open-ledger.ts'
import { isWritable } from '../ledger/with-summaries.ts'
import { findRun } from './find-run.ts'

/** A fold of more events than this leaves a snapshot for the next one, where the ledger can be written. */
const maxEventsFolded = 5_000

/** A run that is looked at. */
export interface LookedAt {
  readonly ledger: string
  readonly run: string
  /** The `seq` that it is folded to; the last one unless given. */
  readonly at?: number
  /** One event, for which nothing is folded. */
  readonly event?: number
}

/** Opens the ledger to read a run; to write, where a long fold of the run can leave a snapshot for the next look. */
export async function withRun<Result extends number>(
  { ledger: ledgerPath, run, at, event }: LookedAt,
  programName: string,
  use: (ledger: Ledger, runId: RunId) => Promise<Result>,
): Promise<Result> {
  const find = (ledger: Ledger): Promise<RunId> => findRun(ledger, run, { programName, ledgerPath })
  const opened = await withLedger(ledgerPath, 'read', async (ledger) => {
    const runId = await find(ledger)
    const isFar = event === undefined && (await isFarFold(ledger, runId, at))
    return isFar ? undefined : await use(ledger, runId)
  })
  if (opened !== undefined) return opened
  const access = (await isWritable(ledgerPath)) ? 'write' : 'read'
  return await withLedger(ledgerPath, access, async (ledger) => await use(ledger, await find(ledger)))
}

async function isFarFold(ledger: Ledger, runId: RunId, at: number | undefined): Promise<boolean> {
  const { seq: maxSeq = 0 } = (await ledger.head(runId)) ?? {}
  const events = await eventsToFold(ledger, runId, Math.min(at ?? maxSeq, maxSeq))
  return events !== undefined && events > maxEventsFolded
}
