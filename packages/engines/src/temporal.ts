import { fileURLToPath } from 'node:url'
import { ApplicationFailure, Context } from '@temporalio/activity'
import type { Client } from '@temporalio/client'
import { option, requireOptions } from '@tallystick/core/internal'
import { Driving } from './driving.ts'
import type { Engine, Wake } from './engine.ts'
import type { RunActivities } from './temporal/workflow.ts'

export interface TemporalEngineOptions {
  /** Opened and closed by its owner: after the workers. */
  readonly client: { readonly workflow: Pick<Client['workflow'], 'signalWithStart'> }
  /** The task queue of workflows and activities. Default: `tallystick`. */
  readonly taskQueue?: string | undefined
  /** Creates a worker, with options of your own beside those given. Not needed in a process that drives nothing. */
  readonly createWorker?: ((options: TemporalWorkerOptions) => Promise<TemporalWorker>) | undefined
}

/** Options that the engine gives to `Worker.create` of `@temporalio/worker`. */
export interface TemporalWorkerOptions {
  readonly taskQueue: string
  /** Replace it by a `workflowBundle` where a bundler has moved it: of `@tallystick/engines/temporal/workflow`. */
  readonly workflowsPath: string
  readonly activities: RunActivities
  readonly maxConcurrentActivityTaskExecutions: number
}

/** A `Worker` of `@temporalio/worker`. */
export interface TemporalWorker {
  run(): Promise<void>
  shutdown(): void
}

const { anyFunction, anyObject, fields, filledText, maybe } = option

const engineOptions = fields<TemporalEngineOptions>({
  client: anyObject,
  taskQueue: maybe(filledText),
  createWorker: maybe(anyFunction),
})

/** How long the server has to take back what has not ended. If it is away, it notices by itself that heartbeats are missing. */
const goodbyeMs = 1_000

/**
 * Delivers wakes as signals to a workflow of [Temporal](https://temporal.io) whose id is the run's. The workflow waits, and drives
 * the run by activities. **Experimental**: it has not run on a server yet.
 */
export function temporalEngine(options: TemporalEngineOptions): Engine {
  requireOptions('temporalEngine', engineOptions, options)
  const { client, taskQueue = 'tallystick', createWorker } = options
  return {
    name: 'temporal',
    capabilities: new Set(['priorities', 'rateLimits']),

    async wake(wake) {
      await client.workflow.signalWithStart('tallystickRun', {
        workflowId: wake.runId,
        taskQueue,
        args: [],
        signal: 'wake',
        signalArgs: [wake],
      })
    },

    async work(drive, { concurrency }) {
      if (!createWorker) throw new TypeError('A worker on Temporal needs the option createWorker.')
      const driving = new Driving()
      const driveRun = async (wake: Wake): Promise<void> => {
        const { info, cancellationSignal, heartbeat } = Context.current()
        const beats = setInterval(heartbeat, (info.heartbeatTimeoutMs ?? 30_000) / 3)
        try {
          if (driving.isStopping) throw new Error('The worker stops.')
          await driving.run(cancellationSignal, (signal) => drive(wake, signal))
        } catch (cause) {
          if (!driving.isStopping) throw cause
          // Goes to another worker at once. Nothing failed, so it is not counted as an error.
          const message = 'The worker stops, so another one gets the run.'
          throw ApplicationFailure.create({ message, nextRetryDelay: 1, category: 'BENIGN' })
        } finally {
          clearInterval(beats)
        }
      }
      const worker = await createWorker({
        taskQueue,
        workflowsPath: fileURLToPath(import.meta.resolve('@tallystick/engines/temporal/workflow')),
        activities: { driveRun },
        maxConcurrentActivityTaskExecutions: concurrency,
      })
      // A worker that breaks ends the process, unless somebody hears of unhandled rejections.
      const ended = worker.run()
      return {
        async stop(graceMs) {
          driving.stop()
          const isGone = Promise.withResolvers<void>()
          const timers = [
            setTimeout(() => driving.giveUp(), graceMs),
            setTimeout(isGone.resolve, graceMs + goodbyeMs),
          ]
          worker.shutdown()
          await Promise.race([ended, isGone.promise])
          for (const timer of timers) clearTimeout(timer)
        },
      }
    },
  }
}
