import type { Clock, Ledger, RunId, RunState } from '@tallystick/core'
import { nextAction, openTurnCalls } from '@tallystick/core/machine'
import { childRunIdOf } from '@tallystick/core/vocabulary'
import { foldTo, runSummaries, type RunSummary } from '@tallystick/ledger'

/** A run that has to be taken up, and its last event. */
export interface DueRun {
  readonly runId: RunId
  readonly seq: number
}

/** The runs that would wait for ever if no process took them up. A run that works for an interrupted one comes with it. */
export async function* dueRuns(
  ledger: Ledger,
  clock: Clock,
  quietMs: number | undefined,
): AsyncGenerator<DueRun, void, undefined> {
  const seen = new Set<RunId>()
  for await (const run of runSummaries(ledger, { statuses: ['unfinished', 'suspended'] })) {
    if (run.status === 'unreadable') continue
    const due = await dueOf(ledger, run, { clock, quietMs })
    if (due === undefined || seen.has(due.runId)) continue
    seen.add(due.runId)
    yield due
  }
}

interface Judging {
  readonly clock: Clock
  readonly quietMs: number | undefined
}

async function dueOf(ledger: Ledger, run: RunSummary, judging: Judging): Promise<DueRun | undefined> {
  if (run.status === 'suspended') return (await isDue(ledger, run, judging.clock)) ? run : undefined
  if (!(await isInterrupted(ledger, run, judging))) return undefined
  return await rootOf(ledger, run)
}

/** Whether a run that waits has something to do by now: its wait is over, a command is in its inbox, or a child run has ended. */
async function isDue(ledger: Ledger, { runId }: RunSummary, clock: Clock): Promise<boolean> {
  const state = await foldTo(ledger, runId)
  if (state.phase === 'done') return false
  if (nextAction(state, clock.now()).kind !== 'suspend' || (await ledger.inbox(runId)).length > 0) return true
  return await hasEndedChild(ledger, state)
}

/** Whether a run awaits a child run that has ended: the process that drove the child run died before it reported the end. */
async function hasEndedChild(ledger: Ledger, state: RunState): Promise<boolean> {
  for (const { toolCallId, status, child } of openTurnCalls(state)) {
    if (status !== 'deferred' || child === undefined) continue
    const childId = childRunIdOf(state.runId, toolCallId)
    const head = await ledger.head(childId)
    if (head === undefined) continue
    for await (const { type } of ledger.read(childId, { fromSeq: head.seq })) {
      if (type === 'run_finished') return true
    }
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

/** The run that a run works for, at whatever depth: it takes up those that work for it. */
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
