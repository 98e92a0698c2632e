import { option, requireOptions } from '@tallystick/core/internal'
import { WaitingError, Worker, type JobsOptions, type Queue, type WorkerOptions } from 'bullmq'
import { Driving } from './driving.ts'
import type { Engine, Wake } from './engine.ts'

export interface BullmqEngineOptions {
  /** Its own, of no other jobs. Opened, heard for errors, and closed by its owner: after the workers. */
  readonly queue: Queue
  /**
   * Options of the workers in BullMQ's own words, such as `limiter` (how many drives begin in a time, over all workers) and
   * `lockDuration` (after so many milliseconds, 30,000 by default, a worker that says nothing counts as dead).
   */
  readonly workerOptions?:
    | Omit<WorkerOptions, 'connection' | 'prefix' | 'concurrency' | 'autorun'>
    | undefined
}

const { anyObject, fields, maybe, valueThat } = option

const engineOptions = fields<BullmqEngineOptions>(
  {
    queue: valueThat('a Queue of bullmq', (value) => Object(Object(value).opts).connection !== undefined),
    workerOptions: maybe(anyObject),
  },
  { worker: 'workerOptions' },
)

/** No wake is given up, whatever number of drives or workers fail: the ledger says when a run ends. */
const forever = 1_000_000_000

/** How long Redis has to take back what has not ended. If it is away, it gives the wakes to others once their locks expire. */
const goodbyeMs = 1_000

const waitingStates: ReadonlySet<string> = new Set(['waiting', 'prioritized', 'delayed'])

/** BullMQ takes the lowest number first, from 1 on; before all of them, jobs without a number. */
const middlePriority = 2 ** 20
const lastPriority = 2 ** 21 - 1

/**
 * Delivers wakes as jobs of [BullMQ](https://docs.bullmq.io), in Redis or Valkey. A run has one job that waits, and while it is
 * driven perhaps one more. A time to come is a delayed job of its own, which adds the job that waits when it is due; when a drive
 * begins, it is removed.
 */
export function bullmqEngine(options: BullmqEngineOptions): Engine {
  requireOptions('bullmqEngine', engineOptions, options)
  const { queue, workerOptions } = options
  const { connection, prefix } = queue.opts
  // Wakes may give up when Redis is away; a worker waits for it.
  const isClient = typeof Reflect.get(connection, 'duplicate') === 'function'
  const ofWorkers = isClient ? connection : { ...connection, maxRetriesPerRequest: null }

  /** The key of a hash: the time to come that was set last, by run. */
  const times = queue.toKey('times')
  const timerId = (runId: string, at: string | number): string => `${encodeURIComponent(runId)}@${at}`

  const jobOptions = ({ priority = 0 }: Wake): JobsOptions => ({
    priority: Math.min(Math.max(1, middlePriority - Math.trunc(priority)), lastPriority),
    attempts: forever,
    backoff: { type: 'custom' },
    removeOnComplete: true,
    stackTraceLimit: 1,
  })

  /** Brings forward a job that waits for its next attempt, too. */
  const addDrive = async (wake: Wake): Promise<void> => {
    const deduplication = { id: wake.runId, keepLastIfActive: true, reschedule: true }
    const add = () => queue.add('drive', wake, { ...jobOptions(wake), deduplication })
    const { id = '' } = await add()
    if (wake.start === undefined) return
    // A job that waits keeps its data, and may be of a wake that does not say how the run begins.
    const there = await queue.getJob(id)
    if (there === undefined || there.data.start !== undefined) return
    await there.updateData({ ...there.data, start: wake.start }).catch(() => undefined)
    // A worker that has taken it may have read it before.
    if (!waitingStates.has(await there.getState())) await add()
  }

  /** Sets an earlier time before it removes a later one, so that a crash leaves one too many, never none. */
  const addTimer = async (wake: Wake, at: number): Promise<void> => {
    const client = await queue.getBackend().client
    const set = await client.hget(times, wake.runId)
    const isToCome = Number(set) > Date.now()
    if (isToCome && Number(set) <= at) return
    const jobId = timerId(wake.runId, at)
    await queue.add('timer', wake, { ...jobOptions(wake), jobId, delay: Math.max(0, at - Date.now()) })
    await client.hset(times, { [wake.runId]: at })
    if (set !== null && isToCome) await queue.remove(timerId(wake.runId, set))
  }

  /** A drive sees what is to come, and its end sets the next time. */
  const removeTimer = async (runId: string): Promise<void> => {
    const client = await queue.getBackend().client
    const set = await client.hget(times, runId)
    if (set === null) return
    // In this order: a wake at the same time that finds it noted must not rely on a job that is about to be removed.
    await queue.remove(timerId(runId, set))
    await client.hdel(times, runId)
  }

  return {
    name: 'bullmq',
    capabilities: new Set(['priorities', 'rateLimits']),

    async wake(wake) {
      if (wake.at !== undefined && wake.at > Date.now()) await addTimer(wake, wake.at)
      else await addDrive(wake)
    },

    async work(drive, { concurrency }) {
      const driving = new Driving()
      const worker = new Worker<Wake>(
        queue.name,
        async (job, token, signal) => {
          if (job.name === 'timer') return await addDrive(job.data)
          try {
            await removeTimer(job.data.runId)
            // A worker that stops may still be given a job that it asked for before.
            if (driving.isStopping) throw new Error('The worker stops.')
            await driving.run(signal, (either) => drive(job.data, either))
          } catch (error) {
            if (!driving.isStopping) throw error
            // Goes to another worker at once. Nothing failed, so nothing is counted.
            await job.moveToWait(token)
            throw new WaitingError()
          }
        },
        {
          stalledInterval: 10_000,
          maxStalledCount: forever,
          ...workerOptions,
          connection: ofWorkers,
          ...(prefix !== undefined && { prefix }),
          concurrency,
          settings: {
            backoffStrategy: (attempt) => Math.min(1000 * 2 ** (attempt - 1), 60_000),
            ...workerOptions?.settings,
          },
        },
      )
      worker.on('error', (error) => queue.emit('error', error))
      return {
        async stop(graceMs) {
          driving.stop()
          const isGone = Promise.withResolvers<void>()
          const timers = [
            setTimeout(() => driving.giveUp(), graceMs),
            setTimeout(isGone.resolve, graceMs + goodbyeMs),
          ]
          const leave = (): void => void worker.disconnect().catch(() => undefined)
          await Promise.race([worker.close(), isGone.promise.then(leave)])
          for (const timer of timers) clearTimeout(timer)
        },
      }
    },
  }
}
