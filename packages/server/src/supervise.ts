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

/** A run that has to be resumed, and its last event. */
interface DueRun {
  readonly runId: RunId
  readonly seq: number
}

/** What decides whether a run is due. A supervisor keeps it from look to look. */
interface Judging {
  readonly clock: Clock
  readonly waits: KnownWaits
}

/**
 * Yields the runs that would wait for ever if no process resumed them. A child of an interrupted run is resumed with it.
 */
async function* dueRuns(ledger: Ledger, judging: Judging): AsyncGenerator<DueRun, void, undefined> {
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

interface Failed {
  /** The last event of the run after the failure. */
  readonly seq: number
  readonly failures: number
  readonly waitsUntil: number
}

const [firstWaitMs, maxWaitMs] = [5_000, 3_600_000]

/**
 * Runs whose resume failed in this process. Each waits longer after each failure, since a resume records events, calls
 * tools and models, and usually fails in the same way as before.
 */
class FailedRuns {
  readonly #ledger: Ledger
  readonly #clock: Clock
  readonly #failed = new Map<RunId, Failed>()

  constructor(ledger: Ledger, clock: Clock) {
    this.#ledger = ledger
    this.#clock = clock
  }

  /** Returns whether a run may be resumed now: its wait is over, or it has an event that came after the failure. */
  mayResume({ runId, seq }: DueRun): boolean {
    const failed = this.#failed.get(runId)
    return failed === undefined || failed.seq !== seq || failed.waitsUntil <= this.#clock.now()
  }

  /** Never rejects: if the ledger cannot say where the run ends, the wait counts from the event at which it was found. */
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

/** What can end the wait of a run, besides a command. */
export interface RunWait {
  /** When the run has something to do of its own, in milliseconds since 1970 UTC; `Infinity` if never. */
  readonly dueAt: number
  readonly children: readonly RunId[]
}

/** What the suspended runs of a ledger wait for. A run is folded once for each event at which it waits. */
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
    const wait = { seq, dueAt: dueTime(state), children }
    this.#known.set(runId, wait)
    return wait
  }

  /** Forgets every other run. */
  keepOnly(waiting: ReadonlySet<RunId>): void {
    for (const runId of this.#known.keys()) if (!waiting.has(runId)) this.#known.delete(runId)
  }
}

/** The first millisecond at which the controller has an action for a run that waits. What is due stays due. */
function dueTime(state: RunState): number {
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

/** What a supervisor supervises. */
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
  const { everyMs = 5_000, clock = defaultHost.clock } = options
  const takeUp = takerUp(options)
  let stopTimer = (): void => {}
  let isStopped = false
  let looking: Promise<readonly RunId[]> = Promise.resolve([])
  const look = (): Promise<readonly RunId[]> => {
    looking = looking.then(takeUp)
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

/** Resumes the runs that are due now. Never rejects: a ledger that fails now may work at the next look. */
function takerUp(options: SuperviseOptions): () => Promise<readonly RunId[]> {
  const { ledger, maxRuns = 32 } = options
  const { clock = defaultHost.clock, report = defaultHost.report } = options
  const judging: Judging = { clock, waits: new KnownWaits(ledger) }
  const driver = driverOf(options, { report, failed: new FailedRuns(ledger, clock) })
  return async () => {
    const taken: RunId[] = []
    try {
      for await (const due of dueRuns(ledger, judging)) {
        if (driver.driving.size >= maxRuns) break
        if (!driver.mayDrive(due)) continue
        taken.push(due.runId)
        void driver.drive(due)
      }
    } catch (error) {
      report(error, 'A supervisor could not read its ledger')
    }
    return taken
  }
}

interface Driver {
  readonly driving: ReadonlySet<RunId>
  mayDrive(run: DueRun): boolean
  /** Resumes a run, and drives it until it stops. */
  drive(run: DueRun): Promise<void>
}

interface Driving {
  readonly report: (error: unknown, what: string) => void
  readonly failed: FailedRuns
}

function driverOf({ runtime, context }: SuperviseOptions, { report, failed }: Driving): Driver {
  const driving = new Set<RunId>()
  const made = context && new ContextOfRecord(context)
  return {
    driving,
    mayDrive: (run) => !driving.has(run.runId) && failed.mayResume(run),
    async drive(run) {
      const { runId } = run
      driving.add(runId)
      try {
        await runtime.resume(runId, { context: made }).result
        failed.delete(runId)
      } catch (error) {
        // Another process was first.
        if (error instanceof LedgerConflictError) return
        // A store that is not available now may be at the next look.
        if (!(error instanceof LedgerUnavailableError)) await failed.add(run)
        report(error, `Run ${runId} could not be taken up`)
      } finally {
        driving.delete(runId)
      }
    },
  }
}
