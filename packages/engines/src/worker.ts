import type { Clock, Rest, Runtime } from '@tallystick/core'
import { RunNotFoundError } from '@tallystick/core'
import { defaultHost, option, requireOptions } from '@tallystick/core/internal'
import type { Drive, Engine, EngineWorker, Wake } from './engine.ts'

/** How a process drives the runs that an engine wakes. */
export interface WorkerOptions {
  /** It has to know the agents of the runs, and drives them. */
  readonly runtime: Runtime
  readonly engine: Engine
  /** The most runs to drive at a time. Default: 10. */
  readonly concurrency?: number | undefined
  /** Hands a run back after this time, in milliseconds, so that others get their turn. Default: 5 minutes. */
  readonly maxMs?: number | undefined
  /** A run that waits for longer than this leaves its place to others, in milliseconds. Default: 5 seconds. */
  readonly parkMs?: number | undefined
  /** How long what is in flight may take once the worker stops, in milliseconds. Default: 5 seconds. */
  readonly graceMs?: number | undefined
  /** The application's context of each run: for a runtime without `contextOf`. */
  readonly context?: unknown
  /** Gets each rest, for logs and measures. */
  readonly onRest?: ((rest: Rest, wake: Wake) => void) | undefined
  /** Default: that of the host. */
  readonly clock?: Clock | undefined
}

const { anyFunction, anyObject, fields, maybe, milliseconds, numberFrom } = option

const workerOptions = fields<WorkerOptions>(
  {
    runtime: anyObject,
    engine: anyObject,
    concurrency: maybe(numberFrom(1, { whole: true })),
    maxMs: maybe(milliseconds),
    parkMs: maybe(milliseconds),
    graceMs: maybe(milliseconds),
    context: maybe(() => undefined),
    onRest: maybe(anyFunction),
    clock: maybe(anyObject),
  },
  { maxRuns: 'concurrency' },
)

/**
 * Drives the runs that an engine wakes, in this process, until it is stopped. Resolves once it takes wakes. Any number of
 * processes may do so: a run is driven by one of them at a time.
 *
 * @example
 * const worker = await startWorker({ runtime, engine: pgBossEngine({ boss }) })
 * process.once('SIGTERM', () => worker.stop(10_000))
 */
export async function startWorker(options: WorkerOptions): Promise<EngineWorker> {
  requireOptions('startWorker', workerOptions, options)
  const { engine, concurrency = 10 } = options
  return await engine.work(createDrive(options), { concurrency })
}

/** How long a run rests at least that could not be driven on, in milliseconds. */
const pauseMs = 1_000

/** Drives a run for a stretch and then wakes it for what comes next. For hosts that are called, such as a cron or a function. */
export function createDrive(options: Omit<WorkerOptions, 'concurrency'>): Drive {
  requireOptions('createDrive', workerOptions, options)
  const { runtime, engine, maxMs = 300_000, parkMs, graceMs, context, onRest } = options
  const { clock = defaultHost.clock } = options
  return async (wake, signal) => {
    const { runId, start, at: _due, ...about } = wake
    const before = await runtime.ledger.head(runId)
    let rest: Rest
    try {
      rest = await runtime.drive(runId, { start, signal, maxMs, parkMs, graceMs, context })
    } catch (error) {
      // A run that was dropped has nothing left to do.
      if (error instanceof RunNotFoundError) rest = { status: 'done', runId, seq: 0, pending: false }
      else throw error
    }
    const { status, seq, wakeAt, pending, started = [] } = rest
    const { priority, tenant } = about
    for (const each of started) await engine.wake({ runId: each, priority, tenant })
    // Another process may have died with the lease of this run or of a child run: nothing moves before that ends.
    const isStuck = status === 'lost' || (status === 'handedBack' && seq === before?.seq && !signal.aborted)
    if (isStuck) await engine.wake({ ...about, runId, at: Math.max(wakeAt ?? 0, clock.now() + pauseMs) })
    else if (status === 'handedBack') await engine.wake({ ...about, runId })
    else if (status !== 'done') {
      // The timer first, then a look at the inbox: a command that came before the look is found, and whoever puts one after it wakes.
      if (wakeAt !== undefined) await engine.wake({ ...about, runId, at: wakeAt })
      if (pending || (await runtime.ledger.inbox(runId)).length > 0) await engine.wake({ ...about, runId })
    }
    onRest?.(rest, wake)
    return rest
  }
}
