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
 * it. The holders of expired leases have gone, so their runs are interrupted, however short they have been quiet.
 */
export async function* dueRuns(
  ledger: Ledger,
  judging: Judging,
  expired: ReadonlySet<RunId>,
): AsyncGenerator<DueRun, void, undefined> {
  const [seen, waiting] = [new Set<RunId>(), new Set<RunId>()]
  for await (const run of runSummaries(ledger, { statuses: ['unfinished', 'suspended'] })) {
    if (run.status === 'unreadable') continue
    if (run.status === 'suspended') waiting.add(run.runId)
    const due = await dueOf(ledger, run, judging, expired)
    if (due === undefined || seen.has(due.runId)) continue
    seen.add(due.runId)
    yield due
  }
  judging.waits.keepOnly(waiting)
}

async function dueOf(
  ledger: Ledger,
  run: RunSummary,
  judging: Judging,
  expired: ReadonlySet<RunId>,
): Promise<DueRun | undefined> {
  if (run.status === 'suspended') return (await isDue(ledger, run, judging)) ? run : undefined
  return await interruptedRoot(ledger, run, judging, expired)
}

/** Whether a run that waits has something to do by now: its wait is over, a command is in its inbox, or a child run has ended. */
async function isDue(ledger: Ledger, run: RunSummary, { clock, waits }: Judging): Promise<boolean> {
  const { dueAt, children } = await waits.of(run)
  if (dueAt <= clock.now() || (await isUnread(ledger, run.runId, waits))) return true
  for (const child of children) if (await hasEnded(ledger, child)) return true
  return false
}

/**
 * Whether a command waits that no process reads. The process that put it takes the run over next. Where the ledger cannot
 * tell whether it has, the command has to be there at two looks.
 */
async function isUnread(ledger: Ledger, runId: RunId, waits: KnownWaits): Promise<boolean> {
  const [first] = await ledger.inbox(runId)
  if (first === undefined) return false
  return ledger.isDriven !== undefined || waits.hasSeen(runId, first.key)
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

/** Returns the root of a run whose process has gone; `undefined` if a process drives the run, or if that cannot be known. */
async function interruptedRoot(
  ledger: Ledger,
  run: RunSummary,
  { clock, quietMs = Infinity }: Judging,
  expired: ReadonlySet<RunId>,
): Promise<DueRun | undefined> {
  const isDriven = await ledger.isDriven?.(run.runId)
  if (isDriven === true) return undefined
  const isCertain = isDriven === false || clock.now() - run.lastAt >= quietMs
  if (!isCertain && expired.size === 0) return undefined
  // Its process may have recorded something since the list was made.
  if ((await ledger.head(run.runId))?.seq !== run.seq) return undefined
  const root = await rootOf(ledger, run)
  return isCertain || expired.has(root.runId) ? root : undefined
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
