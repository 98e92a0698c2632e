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
import { childRunIdOf } from '@tallystick/core/vocabulary'
import { foldTo, runSummaries, type RunSummary } from '@tallystick/ledger'

/** A run to resume, and its last event. */
interface DueRun {
  readonly runId: RunId
  readonly seq: number
}

/**
 * Yields the runs that would wait for ever if no process resumed them. A child of an interrupted run is resumed with it.
 */
async function* findDueRuns(
  ledger: Ledger,
  clock: Clock,
  waits: KnownWaits,
): AsyncGenerator<DueRun, void, undefined> {
  const [seen, waiting] = [new Set<RunId>(), new Set<RunId>()]
  for await (const run of runSummaries(ledger, { statuses: ['unfinished', 'suspended'] })) {
    if (run.status === 'unreadable') continue
    const isSuspended = run.status === 'suspended'
    if (isSuspended) waiting.add(run.runId)
    const due = !isSuspended
      ? await findInterruptedRoot(ledger, run)
      : (await hasWork(ledger, run, await waits.of(run), clock))
        ? run
        : undefined
    if (due === undefined || seen.has(due.runId)) continue
    seen.add(due.runId)
    yield due
  }
  waits.keepOnly(waiting)
}

/** Returns true for a suspended run whose wait is over, whose inbox has a command that no process reads, or whose child run has ended. */
async function hasWork(
  ledger: Ledger,
  { runId }: RunSummary,
  { dueAt, children }: RunWait,
  clock: Clock,
): Promise<boolean> {
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

/** Finds the root of a run whose process is gone; `undefined` if a process drives the run. */
async function findInterruptedRoot(ledger: Ledger, run: RunSummary): Promise<DueRun | undefined> {
  if (await isRunDriven(ledger, run.runId)) return undefined
  // Its process may have recorded something after the list was made.
  if ((await ledger.head(run.runId))?.seq !== run.seq) return undefined
  const root = await findRoot(ledger, run)
  return root.runId === run.runId || !(await isRunDriven(ledger, root.runId)) ? root : undefined
}

/** Finds the root of a run, whose resume also resumes its child runs. */
async function findRoot(ledger: Ledger, { runId, seq, parent }: RunSummary): Promise<DueRun> {
  if (parent?.relation !== 'child') return { runId, seq }
  let id = parent.runId
  for (;;) {
    const { parent: above, phase, seq: last } = await foldTo(ledger, id)
    if (phase === 'done') return { runId, seq }
    if (above?.relation !== 'child') return { runId: id, seq: last }
    id = above.runId
  }
}

interface Failed {
  /** The last event of the run after the failure. */
  readonly seq: number
  readonly failures: number
  readonly waitsUntil: number
}

const [firstWaitMs, maxWaitMs] = [5_000, 3_600_000]

/**
 * Runs whose resume failed in this process. A run waits longer after each failure, since a resume records events, calls
 * tools and models, and usually fails in the same way again.
 */
class FailedRuns {
  readonly #ledger: Ledger
  readonly #clock: Clock
  readonly #failed = new Map<RunId, Failed>()

  constructor(ledger: Ledger, clock: Clock) {
    this.#ledger = ledger
    this.#clock = clock
  }

  /** Returns true if the run's wait is over, or if it has an event after the failure. */
  mayResume({ runId, seq }: DueRun): boolean {
    const failed = this.#failed.get(runId)
    return failed === undefined || failed.seq !== seq || failed.waitsUntil <= this.#clock.now()
  }

  /** Never rejects: if the ledger cannot give the last event of the run, the one at which it was found counts. */
  async add({ runId, seq }: DueRun): Promise<void> {
    const failures = (this.#failed.get(runId)?.failures ?? 0) + 1
    const waitsUntil = this.#clock.now() + Math.min(firstWaitMs * 2 ** (failures - 1), maxWaitMs)
    const head = await this.#ledger.head(runId).catch(() => undefined)
    this.#failed.set(runId, { seq: head?.seq ?? seq, failures, waitsUntil })
  }

  delete(runId: RunId): void {
    this.#failed.delete(runId)
  }
}

/** Events that can end the wait of a run, besides a command. */
export interface RunWait {
  /** When the run can act on its own, in milliseconds since 1970 UTC; `Infinity` if never. */
  readonly dueAt: number
  readonly children: readonly RunId[]
}

/** The waits of suspended runs. A run is folded once for each event at which it waits. */
class KnownWaits {
  readonly #ledger: Ledger
  readonly #known = new Map<RunId, RunWait & { readonly seq: number }>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  async of({ runId, seq }: RunSummary): Promise<RunWait> {
    const known = this.#known.get(runId)
    if (known?.seq === seq) return known
    const state = await foldTo(this.#ledger, runId, seq)
    const children = listCallsAwaitingChild(state).map(({ toolCallId }) => childRunIdOf(runId, toolCallId))
    const wait = { seq, dueAt: findDueTime(state), children }
    this.#known.set(runId, wait)
    return wait
  }

  /** Forgets every other run. */
  keepOnly(waiting: ReadonlySet<RunId>): void {
    for (const runId of this.#known.keys()) if (!waiting.has(runId)) this.#known.delete(runId)
  }
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
  const [waits, failed, driving] = [new KnownWaits(ledger), new FailedRuns(ledger, clock), new Set<RunId>()]
  const drive = async (run: DueRun): Promise<void> => {
    const { runId } = run
    driving.add(runId)
    try {
      await runtime.resume(runId, { context }).result
      failed.delete(runId)
    } catch (error) {
      // Another process was first.
      if (error instanceof LedgerConflictError) return
      // A store that is not available now may be at the next look.
      if (!(error instanceof LedgerUnavailableError)) await failed.add(run)
      report(error, `Run ${runId} could not be resumed`)
    } finally {
      driving.delete(runId)
    }
  }
  /** Resumes the runs that are due now. Never rejects: a ledger that fails now may work at the next look. */
  const resumeDue = async (): Promise<readonly RunId[]> => {
    const taken: RunId[] = []
    try {
      for await (const due of findDueRuns(ledger, clock, waits)) {
        if (driving.size >= maxRuns) break
        if (driving.has(due.runId) || !failed.mayResume(due)) continue
        taken.push(due.runId)
        void drive(due)
      }
    } catch (error) {
      report(error, 'A supervisor could not read its ledger')
    }
    return taken
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
