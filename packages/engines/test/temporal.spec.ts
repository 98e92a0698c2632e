import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Wake } from '../src/engine.ts'
import { temporalEngine, type TemporalWorkerOptions } from '../src/temporal.ts'
import { mergeWakes } from '../src/temporal/merge-wakes.ts'
import { lacksTemporal, loadTemporal, type MockEnvironment } from './support/temporal-packages.ts'
import { runId, watchDrives } from './support/watched-drive.ts'
import { writeHistory, type HistoryStep } from './support/written-history.ts'

const minute = 60_000
const start = { agent: 'clerk', input: 'Hello' }
const wakeOf = (more?: Omit<Wake, 'runId'>): Wake => ({ runId: runId('a'), ...more })
const noClient = { workflow: { signalWithStart: () => Promise.reject(new Error('Nothing is to be woken.')) } }

test('a wake is a signal to the workflow of the run, which it starts', async () => {
  const sent: unknown[] = []
  const signalWithStart = (...args: unknown[]): Promise<never> => {
    sent.push(args)
    return Promise.resolve(undefined as never)
  }
  await temporalEngine({ client: { workflow: { signalWithStart } }, taskQueue: 'runs' }).wake(
    wakeOf({ start }),
  )
  const signal = { signal: 'wake', signalArgs: [{ runId: 'a', start }] }
  expect(sent).toEqual([['tallystickRun', { workflowId: 'a', taskQueue: 'runs', args: [], ...signal }]])
})

test('a process without createWorker drives nothing, and says so', async () => {
  const { drive } = watchDrives()
  await expect(temporalEngine({ client: noClient }).work(drive, { concurrency: 1 })).rejects.toThrow(
    'createWorker',
  )
})

interface Bed {
  readonly options: TemporalWorkerOptions
  readonly environment: MockEnvironment
  readonly drives: ReturnType<typeof watchDrives>
  /** Drives by the activity, as a worker does. */
  readonly driveRun: (wake: Wake) => Promise<void>
  readonly stop: (graceMs: number) => Promise<void>
}

/** A worker whose activities run without a server. */
async function openBed(heartbeatTimeoutMs = 30_000): Promise<Bed> {
  const { MockActivityEnvironment } = loadTemporal()
  const environment = new MockActivityEnvironment({ heartbeatTimeoutMs })
  const drives = watchDrives()
  const given: TemporalWorkerOptions[] = []
  const under = new Set<Promise<unknown>>()
  const ending = Promise.withResolvers<void>()
  const engine = temporalEngine({
    client: noClient,
    createWorker: (options) => {
      given.push(options)
      const run = async (): Promise<void> => {
        await ending.promise
        await Promise.allSettled(under)
      }
      return Promise.resolve({ run, shutdown: ending.resolve })
    },
  })
  const worker = await engine.work(drives.drive, { concurrency: 7 })
  const stop = (graceMs: number): Promise<void> => worker.stop(graceMs)
  onTestFinished(() => stop(0))
  const [options] = given
  if (!options) throw new Error('No worker was created.')
  const driveRun = (wake: Wake): Promise<void> => {
    const activity = environment.run(options.activities.driveRun, wake)
    under.add(activity)
    return activity
  }
  return { options, environment, drives, driveRun, stop }
}

describe.skipIf(lacksTemporal)('the activity', () => {
  test('drives a run, and keeps what it rests on to itself', async () => {
    const { options, drives, driveRun } = await openBed()
    expect(options).toMatchObject({ taskQueue: 'tallystick', maxConcurrentActivityTaskExecutions: 7 })
    const driven = driveRun(wakeOf({ start }))
    const call = await drives.next()
    expect(call.wake).toEqual(wakeOf({ start }))
    call.end()
    expect(await driven).toBe(undefined)
  })

  test('sends heartbeats while it drives', async () => {
    const { environment, drives, driveRun } = await openBed(30)
    const beats = Promise.withResolvers<void>()
    let count = 0
    environment.on('heartbeat', () => {
      if (++count === 3) beats.resolve()
    })
    const driven = driveRun(wakeOf())
    const call = await drives.next()
    await beats.promise
    call.end()
    expect(await driven).toBe(undefined)
  })

  test('fails with its drive, so that Temporal tries again', async () => {
    const { drives, driveRun } = await openBed()
    const driven = driveRun(wakeOf())
    const call = await drives.next()
    call.fail()
    await expect(driven).rejects.toThrow('The drive fails.')
  })

  test('ends its drive when Temporal has given the run to another worker', async () => {
    const { environment, drives, driveRun } = await openBed()
    const driven = driveRun(wakeOf())
    const call = await drives.next()
    expect(call.signal.aborted).toBe(false)
    environment.cancel()
    expect(call.signal.aborted).toBe(true)
    call.end()
    await driven
  })

  test('hands its run over when its worker stops, without counting an error', async () => {
    const { drives, driveRun, stop } = await openBed()
    const driven = driveRun(wakeOf())
    const call = await drives.next()
    const stopped = stop(0)
    expect(call.signal.aborted).toBe(true)
    await expect(driven).rejects.toMatchObject({ category: 'BENIGN', nextRetryDelay: 1, nonRetryable: false })
    await stopped
  })

  test('may end its drive while its worker stops', async () => {
    const { drives, driveRun, stop } = await openBed()
    const driven = driveRun(wakeOf())
    const call = await drives.next()
    const stopped = stop(minute)
    call.end()
    expect(await driven).toBe(undefined)
    await stopped
  })
})

describe.skipIf(lacksTemporal)('the workflow, by histories written by hand,', () => {
  const now = Date.UTC(2030, 0, 1)
  const listeners = new Set(process.listeners('unhandledRejection'))
  let replay: (first: Wake, steps: readonly HistoryStep[]) => Promise<unknown>
  beforeAll(async () => {
    const { bundleWorkflowCode, DefaultLogger, Runtime, Worker } = loadTemporal()
    const logger = new DefaultLogger('WARN')
    Runtime.install({ logger })
    const workflowsPath = fileURLToPath(new URL('../src/temporal/workflow.ts', import.meta.url))
    const workflowBundle = await bundleWorkflowCode({ workflowsPath, logger })
    replay = async (first, steps) => {
      await Worker.runReplayHistory({ workflowBundle }, writeHistory(now, first, steps))
      return 'as written'
    }
  })

  // The worker of a replay leaves one.
  afterAll(() => {
    for (const each of process.listeners('unhandledRejection'))
      if (!listeners.has(each)) process.off('unhandledRejection', each)
  })

  test('drives once and ends', async () => {
    await expect(replay(wakeOf({ start }), [{ drive: wakeOf({ start }) }, 'ends'])).resolves.toBe(
      'as written',
    )
  })

  test('is held to what a history says', async () => {
    await expect(replay(wakeOf(), ['ends'])).rejects.toThrow('Nondeterminism error')
    await expect(replay(wakeOf(), [{ timerMs: minute }])).rejects.toThrow('Nondeterminism error')
  })

  test('waits for a time, then drives', async () => {
    const wake = wakeOf({ at: now + minute })
    await expect(replay(wake, [{ timerMs: minute }, { drive: wake }, 'ends'])).resolves.toBe('as written')
  })

  test('drives at once when a wake of now comes while it waits', async () => {
    await expect(
      replay(wakeOf({ at: now + minute, start }), [
        { timerMs: minute, until: wakeOf({ tenant: 'b' }) },
        { drive: wakeOf({ tenant: 'b', start }) },
        'ends',
      ]),
    ).resolves.toBe('as written')
  })

  test('drives again after a drive in which it was woken', async () => {
    await expect(
      replay(wakeOf(), [{ drive: wakeOf(), during: [wakeOf(), wakeOf()] }, { drive: wakeOf() }, 'ends']),
    ).resolves.toBe('as written')
  })

  test('waits for the earliest of the times that are set while it drives', async () => {
    const [early, late] = [wakeOf({ at: now + 2 * minute }), wakeOf({ at: now + 9 * minute })]
    await expect(
      replay(wakeOf(), [
        { drive: wakeOf(), during: [late, early] },
        { timerMs: 2 * minute - 1_000 },
        { drive: early },
        'ends',
      ]),
    ).resolves.toBe('as written')
  })

  test('begins a new history when this one has become long', async () => {
    const late = wakeOf({ at: now + 9 * minute })
    await expect(
      replay(wakeOf(), [{ drive: wakeOf(), during: [late], isLong: true }, { continuesWith: late }]),
    ).resolves.toBe('as written')
    await expect(replay(wakeOf(), [{ drive: wakeOf(), isLong: true }, 'ends'])).resolves.toBe('as written')
  })
})

test('two wakes are one, at the earlier time, with what the first one carries', () => {
  const [early, late] = [wakeOf({ at: 1, priority: 1, start }), wakeOf({ at: 2, priority: 2, key: 's' })]
  const both = { runId: 'a', priority: 1, start, key: 's' }
  expect(mergeWakes(early, late)).toEqual({ ...both, at: 1 })
  expect(mergeWakes(late, early)).toEqual({ ...both, priority: 2, at: 1 })
  expect(mergeWakes(early, wakeOf())).toEqual({ runId: 'a', priority: 1, start })
  expect(mergeWakes(wakeOf(), late)).toEqual({ runId: 'a', priority: 2, key: 's' })
})
