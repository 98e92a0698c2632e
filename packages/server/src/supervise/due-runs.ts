import type { Clock, Ledger, RunId } from '@tallystick/core'
import { isRunDriven } from '@tallystick/core/kit'
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
  readonly waits: KnownWaits
}

/**
 * Yields the runs that would wait for ever if no process resumed them. A child of an interrupted run is resumed with it.
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
  return await interruptedRoot(ledger, run)
}

/** Whether a run that waits has something to do by now: its wait is over, a command is in its inbox, or a child run has ended. */
async function isDue(ledger: Ledger, run: RunSummary, { clock, waits }: Judging): Promise<boolean> {
  const { dueAt, children } = await waits.of(run)
  if (dueAt <= clock.now() || (await isUnread(ledger, run.runId))) return true
  for (const child of children) if (await hasEnded(ledger, child)) return true
  return false
}

/** Whether a command waits that no process reads: a process that has put one takes the run over next, if none drives it. */
async function isUnread(ledger: Ledger, runId: RunId): Promise<boolean> {
  return (await ledger.inbox(runId)).length > 0 && !(await isRunDriven(ledger, runId))
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

/** Returns the root of a run whose process has gone; `undefined` if a process drives the run. */
async function interruptedRoot(ledger: Ledger, run: RunSummary): Promise<DueRun | undefined> {
  if (await isRunDriven(ledger, run.runId)) return undefined
  // Its process may have recorded something since the list was made.
  if ((await ledger.head(run.runId))?.seq !== run.seq) return undefined
  const root = await rootOf(ledger, run)
  return root.runId === run.runId || !(await isRunDriven(ledger, root.runId)) ? root : undefined
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
