import type { Clock, Ledger, RunId } from '@tallystick/core'
import { foldTo, runSummaries, type RunSummary } from '@tallystick/ledger'
import type { KnownWaits } from './known-waits.ts'

/** A run that has to be resumed, and its last event. */
export interface DueRun {
  readonly runId: RunId
  readonly seq: number
}

/** What decides whether a run is due. A supervisor keeps it from look to look. */
export interface Judging {
  readonly clock: Clock
  readonly quietMs: number | undefined
  readonly waits: KnownWaits
}

/**
 * Yields the runs that would wait for ever if no process resumed them. A child of an interrupted run is resumed with
 * it.
 */
export async function* dueRuns(ledger: Ledger, judging: Judging): AsyncGenerator<DueRun, void, undefined> {
  const [seen, waiting] = [new Set<RunId>(), new Set<RunId>()]
  for await (const run of runSummaries(ledger, { statuses: ['unfinished', 'suspended'] })) {
    if (run.status === 'unreadable') continue
    if (run.status === 'suspended') waiting.add(run.runId)
    const due = await dueOf(ledger, run, judging)
    if (due === undefined || seen.has(due.runId)) continue
    seen.add(due.runId)
    yield due
  }
  judging.waits.keepOnly(waiting)
}

async function dueOf(ledger: Ledger, run: RunSummary, judging: Judging): Promise<DueRun | undefined> {
  if (run.status === 'suspended') return (await isDue(ledger, run, judging)) ? run : undefined
  if (!(await isInterrupted(ledger, run, judging))) return undefined
  return await rootOf(ledger, run)
}

/** Whether a run that waits has something to do by now: its wait is over, a command is in its inbox, or a child run has ended. */
async function isDue(ledger: Ledger, run: RunSummary, { clock, waits }: Judging): Promise<boolean> {
  const { dueAt, children } = await waits.of(run)
  if (dueAt <= clock.now() || (await ledger.inbox(run.runId)).length > 0) return true
  for (const child of children) if (await hasEnded(ledger, child)) return true
  return false
}

/** Whether a child run has ended. If its run still waits, the process that drove it died before it reported the end. */
async function hasEnded(ledger: Ledger, childId: RunId): Promise<boolean> {
  const head = await ledger.head(childId)
  if (head === undefined) return false
  for await (const { type } of ledger.read(childId, { fromSeq: head.seq })) {
    if (type === 'run_finished') return true
  }
  return false
}

async function isInterrupted(
  ledger: Ledger,
  { runId, seq, lastAt }: RunSummary,
  { clock, quietMs }: Judging,
): Promise<boolean> {
  const isDriven = await ledger.isDriven?.(runId)
  if (isDriven ?? (quietMs === undefined || clock.now() - lastAt < quietMs)) return false
  // Its process may have recorded something since the list was made.
  return (await ledger.head(runId))?.seq === seq
}

/** Returns the root of a run: its resume resumes its child runs. */
async function rootOf(ledger: Ledger, { runId, seq, parent }: RunSummary): Promise<DueRun> {
  if (parent?.relation !== 'child') return { runId, seq }
  let id = parent.runId
  for (;;) {
    const { parent: above, phase, seq: last } = await foldTo(ledger, id)
    if (phase === 'done') return { runId, seq }
    if (above?.relation !== 'child') return { runId: id, seq: last }
    id = above.runId
  }
}
