import { option, requireOptions } from '@tallystick/core/internal'
import type { Db, PgBoss, Queue, WorkOptions } from 'pg-boss'
import { Driving } from './driving.ts'
import type { Drive, Engine, EngineCapability, EngineWorker, Wake } from './engine.ts'

export interface PgBossEngineOptions {
  /** Started, and stopped by its owner: after the workers, before the pool. */
  readonly boss: PgBoss
  /** The queue that the engine makes and keeps for itself. Default: `tallystick`. */
  readonly queue?: string | undefined
  /**
   * Options of the queue in pg-boss's own words. Defaults: `heartbeatSeconds: 30`, after which a worker that says nothing counts as
   * dead, `retryDelayMax: 60`, `expireInSeconds`, the longest drive, at its maximum of 24 hours, and no end of retries.
   */
  readonly queueOptions?: Omit<Queue, 'name' | 'policy' | 'partition' | 'deadLetter'> | undefined
  /** Options of the workers in pg-boss's own words, such as `pollingIntervalSeconds` and, for tenants, `groupConcurrency`. */
  readonly workOptions?:
    | Pick<
        WorkOptions,
        | 'pollingIntervalSeconds'
        | 'notifyPollingIntervalSeconds'
        | 'groupConcurrency'
        | 'heartbeatRefreshSeconds'
        | 'minPriority'
        | 'maxPriority'
      >
    | undefined
}

/** A transaction of the database of pg-boss: a client of `pg`, or one of pg-boss's adapters, such as `fromKysely(trx)`. */
export type PgBossTransaction = Db | { query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }> }

const { anyObject, fields, filledText, maybe } = option
const engineOptions = fields<PgBossEngineOptions>({
  boss: anyObject,
  queue: maybe(filledText),
  queueOptions: maybe(anyObject),
  workOptions: maybe(anyObject),
})

/** The highest number of pg-boss's columns: no wake is given up, and none is too old. */
const forever = 2 ** 31 - 1

/**
 * Delivers wakes as jobs of [pg-boss](https://pgboss.io), in the Postgres that holds them. A run has one job that waits, and while
 * it is driven perhaps one more; runs of one key are driven one at a time.
 */
export function pgBossEngine(options: PgBossEngineOptions): Engine {
  requireOptions('pgBossEngine', engineOptions, options)
  const { boss, queue = 'tallystick', ...given } = options
  const queueOptions = {
    notify: true,
    heartbeatSeconds: 30,
    expireInSeconds: 24 * 60 * 60,
    retryLimit: forever,
    retryDelay: 1,
    retryBackoff: true,
    retryDelayMax: 60,
    retentionSeconds: forever,
    deleteAfterSeconds: 60 * 60,
    ...given.queueOptions,
  }
  // The timers of pg-boss are found by polling, also where new jobs are notified.
  const workOptions = { notifyPollingIntervalSeconds: 2, ...given.workOptions }

  let made: Promise<void> | undefined
  const makeQueue = async (): Promise<void> => {
    await boss.createQueue(queue, { ...queueOptions, policy: 'singleton' })
    const { policy } = (await boss.getQueue(queue)) ?? {}
    if (policy !== 'singleton') {
      throw new Error(
        `The queue "${queue}" of pg-boss has the policy "${policy}", so it is not the engine's. Name another one.`,
      )
    }
    await boss.updateQueue(queue, queueOptions)
  }
  const hasQueue = (): Promise<void> =>
    (made ??= makeQueue().catch((error: unknown) => {
      made = undefined
      throw error
    }))

  /** Changes the job that waits, which locks it until the transaction ends: no worker takes it before it sees what was put. */
  const merge = async (wake: Wake, db: Db): Promise<void> => {
    const { at, ...data } = wake
    const { runId, key = runId, priority = 0, tenant } = data
    await db.executeSql('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`${queue} ${runId}`])
    const [job] = await boss.findJobs<Wake>(queue, { key, data: { runId }, queued: true, limit: 1, db })
    if (job) {
      const { updated } = await boss.update(
        queue,
        { ...data, ...job.data },
        {
          id: job.id,
          startAfter: at === undefined ? 0 : new Date(Math.min(at, job.startAfter.getTime())),
          priority: Math.max(priority, job.priority),
          db,
        },
      )
      // A worker that has taken it since may have looked before what was put.
      if (updated > 0) return
    }
    const startAfter = at === undefined ? {} : { startAfter: new Date(at) }
    const group = tenant === undefined ? {} : { group: { id: tenant } }
    await boss.send(queue, data, { ...startAfter, ...group, singletonKey: key, priority, db })
  }

  const wake = async (wake: Wake, within?: PgBossTransaction): Promise<void> => {
    await hasQueue()
    if (within) return await merge(wake, toDb(within))
    const db = boss.getDb()
    const own = await db.beginTransaction?.()
    // Without a transaction, wakes of the same moment may become two jobs.
    if (!own) return await merge(wake, db)
    try {
      await merge(wake, own.db)
      await own.commit()
    } catch (error) {
      await own.rollback()
      throw error
    }
  }

  const work = async (
    drive: Drive,
    { concurrency }: { readonly concurrency: number },
  ): Promise<EngineWorker> => {
    await hasQueue()
    const driving = new Driving()
    const driveJob = async (job: { readonly data: Wake; readonly signal: AbortSignal }): Promise<void> => {
      try {
        if (driving.isStopping) throw new Error('The worker stops.')
        await driving.run(job.signal, (signal) => drive(job.data, signal))
      } catch (error) {
        if (!driving.isStopping) throw error
        // A job of its own, so that the end of this one counts no failure.
        await wake(job.data)
      }
    }
    const addSlot = async (): Promise<string> => {
      const slot: string = await boss.work<Wake>(queue, workOptions, async (jobs) => {
        try {
          await Promise.all(jobs.map(driveJob))
        } finally {
          // It looks for the next job at once, not after its polling interval.
          boss.notifyWorker(slot)
        }
      })
      return slot
    }
    const slots = await Promise.all(Array.from({ length: concurrency }, addSlot))
    return {
      async stop(graceMs) {
        driving.stop()
        const timer = setTimeout(() => driving.giveUp(), graceMs)
        await Promise.all(slots.map((id) => boss.offWork(queue, { id, wait: true })))
        clearTimeout(timer)
      },
    }
  }

  const capabilities = new Set<EngineCapability>(['exclusivePerKey', 'transactional', 'priorities'])
  if (given.workOptions?.groupConcurrency !== undefined) capabilities.add('fairness')
  return {
    name: 'pg-boss',
    capabilities,
    wake: (given, within) => wake(given, within as PgBossTransaction),
    work,
  }
}

function toDb(within: PgBossTransaction): Db {
  return 'executeSql' in within ? within : { executeSql: (text, values) => within.query(text, values) }
}
