import {
  LedgerConflictError,
  LedgerUnavailableError,
  type Clock,
  type Ledger,
  type RunId,
  type Runtime,
} from '@tallystick/core'
import { ContextOfRecord, defaultHost, option, requireOptions, type RecordedRun } from '@tallystick/core/kit'
import { dueRuns, type DueRun, type Judging } from './due-runs.ts'
import { FailedRuns } from './failed-runs.ts'
import { KnownWaits } from './known-waits.ts'

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
