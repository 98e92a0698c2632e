import { type Clock, ConfigurationError, type Ledger, type RunId } from '@tallystick/core'
import { defaultHost, findOpenRoot, option, requireOptions } from '@tallystick/core/internal'
import type { Drive, Engine, EngineWorker } from './engine.ts'

export interface PollingOptions {
  readonly ledger: Ledger
  /** How often it looks for runs that are due, in milliseconds. Default: 1 second. A command is found at once. */
  readonly everyMs?: number | undefined
  /** Gets errors of the ledger and of drives. Default: the error output of the host. */
  readonly report?: ((error: unknown, what: string) => void) | undefined
  readonly clock?: Clock | undefined
}

const { anyFunction, anyObject, fields, maybe, milliseconds } = option
const pollingOptions = fields<PollingOptions>(
  {
    ledger: anyObject,
    everyMs: maybe(milliseconds),
    report: maybe(anyFunction),
    clock: maybe(anyObject),
  },
  { intervalMs: 'everyMs', pollIntervalMs: 'everyMs' },
)

const [firstRetryMs, lastRetryMs] = [5_000, 3_600_000]

/** The newest runs, of which a worker that starts takes up at once those of processes that have died on this machine. */
const newestRuns = 100

/**
 * Drives the runs of a ledger that have something to do and that no process drives: those that were enqueued or sent a command,
 * whose time has come, and whose process has died. It needs no server but the ledger's. Any number of processes may do so, since
 * whoever drives a run has its lease; and beside another engine it finds what that one has lost.
 *
 * A run whose process has died is due when its lease ends, after 12 seconds at most. A worker that starts, as after a crash, does
 * not wait for that: it takes up at once those of the newest runs whose process has died on this machine.
 *
 * A run whose drive fails here waits longer after each failure, an hour at most, or until something new is recorded of it.
 */
export function pollingEngine(options: PollingOptions): Engine {
  requireOptions('pollingEngine', pollingOptions, options)
  const { ledger, everyMs = 1_000 } = options
  const { clock = defaultHost.clock, report = defaultHost.report } = options
  const looks = new Set<() => void>()
  return {
    name: 'polling',
    capabilities: new Set(),
    // The ledger says when a run is due: it was told with the command, or by the drive before.
    wake({ runId, at, start }) {
      if (start !== undefined) {
        const error = new ConfigurationError(
          `pollingEngine: run ${runId} is not on record, and this engine finds only runs that are. Start it with runtime.enqueue.`,
        )
        return Promise.reject(error)
      }
      if (at === undefined || at <= clock.now()) for (const look of looks) look()
      return Promise.resolve()
    },
    work(drive, { concurrency }) {
      const worker = new Poll(drive, { ledger, everyMs, clock, report, concurrency })
      const look = (): void => worker.look()
      looks.add(look)
      look()
      return Promise.resolve({
        stop: async (graceMs) => {
          looks.delete(look)
          await worker.stop(graceMs)
        },
      })
    },
  }
}

interface PollSettings {
  readonly ledger: Ledger
  readonly everyMs: number
  readonly clock: Clock
  readonly report: (error: unknown, what: string) => void
  readonly concurrency: number
}

/** Finds and drives due runs, in one process. */
class Poll implements EngineWorker {
  readonly #drive: Drive
  readonly #settings: PollSettings
  readonly #stopping = new AbortController()
  readonly #driving = new Map<RunId, Promise<void>>()
  /** Until when runs are left that another process drives: a child run of theirs may be due all that time. */
  readonly #left = new Map<RunId, number>()
  /** Runs whose drive failed here, with their last event after that. */
  readonly #failed = new Map<
    RunId,
    { readonly seq: number; readonly failures: number; readonly until: number }
  >()
  readonly #hints: { unsubscribe(): void }
  #stopTimer = (): void => {}
  #isStarted = false
  #looking: Promise<void> | undefined
  #isAskedAgain = false

  constructor(drive: Drive, settings: PollSettings) {
    this.#drive = drive
    this.#settings = settings
    const { ledger, report } = settings
    this.#hints = ledger.changes(undefined, 'inbox').subscribe({
      next: () => this.look(),
      error: (error: unknown) =>
        report(error, 'The ledger stopped telling what changes; runs that are due are still looked for'),
    })
  }

  /** Looks now, or again once the look under way has ended. */
  look(): void {
    if (this.#stopping.signal.aborted) return
    this.#isAskedAgain = this.#looking !== undefined
    this.#looking ??= this.#findDue().finally(() => {
      this.#looking = undefined
      if (this.#isAskedAgain) this.look()
    })
  }

  async stop(graceMs: number): Promise<void> {
    const { clock } = this.#settings
    this.#stopping.abort()
    this.#stopTimer()
    this.#hints.unsubscribe()
    const ended = async (): Promise<void> => {
      await this.#looking
      await Promise.all(this.#driving.values())
    }
    const grace = Promise.withResolvers<void>()
    const stopTimer = clock.schedule(graceMs, () => grace.resolve())
    await Promise.race([ended(), grace.promise])
    stopTimer()
  }

  /** Drives what is due as far as there is room. Never rejects: a ledger that fails now may work at the next look. */
  async #findDue(): Promise<void> {
    const { clock, concurrency, everyMs, report } = this.#settings
    this.#stopTimer()
    this.#forget(clock.now())
    try {
      if (this.#driving.size < concurrency) {
        for await (const { runId } of this.#due()) {
          const root = await this.#findRoot(runId)
          const isFree = root !== undefined && !this.#driving.has(root) && (await this.#mayDrive(root))
          if (this.#stopping.signal.aborted) return
          if (!isFree) continue
          this.#driving.set(root, this.#driveRun(root, runId))
          if (this.#driving.size >= concurrency) break
        }
      }
    } catch (error) {
      report(error, 'The runs that are due could not be read')
    }
    // Not for upkeep: a process lives as long as its worker.
    if (!this.#stopping.signal.aborted) this.#stopTimer = clock.schedule(everyMs, () => this.look())
  }

  /** Yields the runs that are due; at the start, first those whose process is known to have died. */
  async *#due(): AsyncGenerator<{ readonly runId: RunId }, void> {
    const { ledger, clock } = this.#settings
    if (!this.#isStarted) {
      for await (const { runId } of ledger.runs({ limit: newestRuns })) {
        const lease = await ledger.lease(runId)
        if (lease !== undefined && defaultHost.process?.hasEnded(lease.holder) === true) yield { runId }
      }
      this.#isStarted = true
    }
    yield* ledger.due({ before: clock.now() })
  }

  /** Finds the run to drive for one that is due. One that cannot be read keeps no other from being found. */
  async #findRoot(runId: RunId): Promise<RunId | undefined> {
    if (!(await this.#mayDrive(runId))) return undefined
    try {
      return await findOpenRoot(this.#settings.ledger, runId)
    } catch (error) {
      await this.#onFailure(runId, error)
      return undefined
    }
  }

  async #mayDrive(runId: RunId): Promise<boolean> {
    const now = this.#settings.clock.now()
    if ((this.#left.get(runId) ?? 0) > now) return false
    const failed = this.#failed.get(runId)
    if (failed === undefined || failed.until <= now) return true
    return (await this.#readSeq(runId)) !== failed.seq
  }

  /** One that is due is tried when its time has come: those that are not have been driven elsewhere. */
  #forget(now: number): void {
    for (const [runId, until] of this.#left) if (until <= now) this.#left.delete(runId)
    for (const [runId, { until }] of this.#failed) if (until + lastRetryMs <= now) this.#failed.delete(runId)
  }

  async #readSeq(runId: RunId): Promise<number> {
    const head = await this.#settings.ledger.head(runId).catch(() => undefined)
    return head?.seq ?? 0
  }

  /** Leaves a run for longer after each failure. */
  async #onFailure(runId: RunId, error: unknown): Promise<void> {
    const { clock, report } = this.#settings
    const failures = (this.#failed.get(runId)?.failures ?? 0) + 1
    const until = clock.now() + Math.min(firstRetryMs * 2 ** (failures - 1), lastRetryMs)
    this.#failed.set(runId, { seq: await this.#readSeq(runId), failures, until })
    report(error, `Run ${runId} could not be driven`)
  }

  /** Drives a run since it is due, or since a run below it is. */
  async #driveRun(runId: RunId, dueId: RunId): Promise<void> {
    const { clock, everyMs } = this.#settings
    try {
      const { status } = await this.#drive({ runId }, this.#stopping.signal)
      // A child run whose parent waits for it no more is due all the same.
      const isAtRest = status === 'waiting' || status === 'parked'
      if (isAtRest && dueId !== runId) await this.#drive({ runId: dueId }, this.#stopping.signal)
      if (status === 'lost') this.#left.set(runId, clock.now() + everyMs)
      this.#failed.delete(runId)
    } catch (error) {
      await this.#onFailure(runId, error)
    } finally {
      this.#driving.delete(runId)
      this.look()
    }
  }
}
