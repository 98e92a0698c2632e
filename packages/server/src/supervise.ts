import {
  type Clock,
  type Ledger,
  LedgerConflictError,
  LedgerUnavailableError,
  type RecordedRun,
  type RunId,
  type RunState,
  type Runtime,
} from '@tallystick/core'
import {
  listCallsAwaitingChild,
  ContextOfRecord,
  defaultHost,
  isRunDriven,
  option,
  requireOptions,
} from '@tallystick/core/internal'
import { nextAction } from '@tallystick/core/machine'
import { deriveChildRunId } from '@tallystick/core/vocabulary'
import { foldTo, readRunSummaries, type RunSummary } from '@tallystick/ledger'

/** A run to resume, and its last event. */
interface DueRun {
  readonly runId: RunId
  readonly seq: number
}

/**
 * Finds the root of a run whose process is gone, whose resume also resumes its child runs; `undefined` if a process drives either.
 */
async function findInterruptedRoot(ledger: Ledger, run: RunSummary): Promise<DueRun | undefined> {
  if (await isRunDriven(ledger, run.runId)) return undefined
  // Its process may have recorded something after the list was made.
  if ((await ledger.head(run.runId))?.seq !== run.seq) return undefined
  let root: DueRun = run
  for (let above = run.parent; above?.relation === 'child';) {
    const { runId, parent, phase, seq } = await foldTo(ledger, above.runId)
    if (phase === 'done') return run
    root = { runId, seq }
    above = parent
  }
  return root === run || !(await isRunDriven(ledger, root.runId)) ? root : undefined
}

/** The events that can end the wait of a run, besides a command. */
interface RunWait extends DueRun {
  /** When the run can act on its own, in milliseconds since 1970 UTC; `Infinity` if never. */
  readonly dueAt: number
  readonly children: readonly RunId[]
}

async function readWait(ledger: Ledger, { runId, seq }: RunSummary): Promise<RunWait> {
  const state = await foldTo(ledger, runId, seq)
  const children = listCallsAwaitingChild(state).map(({ toolCallId }) => deriveChildRunId(runId, toolCallId))
  return { runId, seq, dueAt: findDueTime(state), children }
}

/** Finds the first millisecond at which the controller has an action for a run that waits, which it then always has. */
function findDueTime(state: RunState): number {
  const isDue = (now: number): boolean => nextAction(state, now).kind !== 'suspend'
  let [waits, due] = [state.at - 1, Number.MAX_SAFE_INTEGER]
  if (!isDue(due)) return Infinity
  while (due - waits > 1) {
    const middle = Math.floor(waits + (due - waits) / 2)
    if (isDue(middle)) due = middle
    else waits = middle
  }
  return due
}

/** Returns true for a suspended run whose wait is over, whose inbox has a command that no process reads, or whose child run has ended. */
async function hasWork(ledger: Ledger, { runId, dueAt, children }: RunWait, clock: Clock): Promise<boolean> {
  if (dueAt <= clock.now()) return true
  // A process that has put a command takes the run over next, if none drives it.
  if ((await ledger.inbox(runId)).length > 0 && !(await isRunDriven(ledger, runId))) return true
  for (const childId of children) {
    const head = await ledger.head(childId)
    if (head === undefined) continue
    // The process that drove the child run died before it reported the end.
    for await (const { type } of ledger.read(childId, { fromSeq: head.seq })) {
      if (type === 'run_finished') return true
    }
  }
  return false
}

export interface SuperviseOptions {
  /** Drives the runs that are resumed: it has to know their agents. */
  readonly runtime: Runtime
  readonly ledger: Ledger
  /** How often it looks at the ledger, in milliseconds. Default: 5 seconds. */
  readonly everyMs?: number | undefined
  /** The most runs to drive at a time; the others wait for the next look. Default: 32. */
  readonly maxRuns?: number | undefined
  /** Makes the context of a run that is resumed, from what is on record of it: as for `createServer`. */
  readonly context?: ((run: RecordedRun) => unknown) | undefined
  /** Gets errors. Default: the error output of the host. */
  readonly report?: ((error: unknown, what: string) => void) | undefined
  readonly clock?: Clock | undefined
}

/** Supervises the runs of a ledger. */
export interface Supervisor {
  /** Looks at the ledger now, and returns the runs that it resumes. */
  look(): Promise<readonly RunId[]>
  /** Stops looking, and resolves when the current look has ended. `runtime.drain` stops the runs that it drives. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const [firstWaitMs, maxWaitMs] = [5_000, 3_600_000]

const { anyFunction, anyObject, fields, maybe, milliseconds, numberFrom } = option

const superviseOptions = fields<SuperviseOptions>(
  {
    runtime: anyObject,
    ledger: anyObject,
    everyMs: maybe(milliseconds),
    maxRuns: maybe(numberFrom(1, { whole: true })),
    context: maybe(anyFunction),
    report: maybe(anyFunction),
    clock: maybe(anyObject),
  },
  { intervalMs: 'everyMs', pollIntervalMs: 'everyMs', concurrency: 'maxRuns' },
)

/**
 * Resumes the runs of a ledger that would otherwise wait for ever: runs whose process has died, runs whose deadline or
 * approval expired while they waited, and runs with a command in their inbox that no process reads. Several may
 * supervise one ledger: whoever drives a run has its lease, and a run that another process drives is left alone, however long
 * its tools are silent. A run whose resume fails here waits longer after each failure, an hour at most.
 */
export function supervise(options: SuperviseOptions): Supervisor {
  requireOptions('supervise', superviseOptions, options)
  const { runtime, ledger, everyMs = 5_000, maxRuns = 32 } = options
  const { clock = defaultHost.clock, report = defaultHost.report } = options
  const context = options.context && new ContextOfRecord(options.context)
  const driving = new Set<RunId>()
  /** The waits of suspended runs: a run is folded once for each event at which it waits. */
  const waits = new Map<RunId, RunWait>()
  /**
   * Runs whose resume failed here, with their last event after that. Each waits longer after each failure, since a resume
   * records events, calls tools and models, and usually fails in the same way again.
   */
  const failed = new Map<RunId, { seq: number; failures: number; waitsUntil: number }>()
  const mayResume = ({ runId, seq }: DueRun): boolean => {
    const last = failed.get(runId)
    return last === undefined || last.seq !== seq || last.waitsUntil <= clock.now()
  }
  const drive = async ({ runId, seq }: DueRun): Promise<void> => {
    driving.add(runId)
    try {
      await runtime.resume(runId, { context }).result
      failed.delete(runId)
    } catch (error) {
      // Another process was first.
      if (error instanceof LedgerConflictError) return
      // A store that is not available now may be at the next look.
      if (!(error instanceof LedgerUnavailableError)) {
        const failures = (failed.get(runId)?.failures ?? 0) + 1
        const waitsUntil = clock.now() + Math.min(firstWaitMs * 2 ** (failures - 1), maxWaitMs)
        const head = await ledger.head(runId).catch(() => undefined)
        failed.set(runId, { seq: head?.seq ?? seq, failures, waitsUntil })
      }
      report(error, `Run ${runId} could not be resumed`)
    } finally {
      driving.delete(runId)
    }
  }
  /** Yields the runs that would wait for ever if no process resumed them. A child of an interrupted run is resumed with it. */
  const findDueRuns = async function* (): AsyncGenerator<DueRun, void> {
    const waiting = new Set<RunId>()
    for await (const run of readRunSummaries(ledger, { statuses: ['unfinished', 'suspended'] })) {
      if (run.status === 'unreadable') continue
      if (run.status === 'suspended') {
        const known = waits.get(run.runId)
        const wait = known?.seq === run.seq ? known : await readWait(ledger, run)
        waiting.add(run.runId)
        waits.set(run.runId, wait)
        if (await hasWork(ledger, wait, clock)) yield run
      } else {
        const root = await findInterruptedRoot(ledger, run)
        if (root !== undefined) yield root
      }
    }
    for (const runId of waits.keys()) if (!waiting.has(runId)) waits.delete(runId)
  }
  /** Resumes the runs that are due now. Never rejects: a ledger that fails now may work at the next look. */
  const resumeDue = async (): Promise<readonly RunId[]> => {
    const taken = new Set<RunId>()
    try {
      for await (const due of findDueRuns()) {
        if (driving.size >= maxRuns) break
        if (taken.has(due.runId) || driving.has(due.runId) || !mayResume(due)) continue
        taken.add(due.runId)
        void drive(due)
      }
    } catch (error) {
      report(error, 'A supervisor could not read its ledger')
    }
    return [...taken]
  }
  let stopTimer = (): void => {}
  let isStopped = false
  let looking: Promise<readonly RunId[]> = Promise.resolve([])
  const look = (): Promise<readonly RunId[]> => {
    looking = looking.then(resumeDue)
    return looking
  }
  const next = (): void => {
    if (!isStopped) stopTimer = clock.schedule(everyMs, () => void look().then(next))
  }
  void look().then(next)
  const stop = async (): Promise<void> => {
    isStopped = true
    stopTimer()
    await looking
  }
  return { look, stop, [Symbol.asyncDispose]: stop }
}
