import type { RunId } from '@tallystick/core'
import { describeDifference } from '@tallystick/core/internal'
import type { Engine, EngineCapability, EngineWorker } from '../engine.ts'
import { Desk, freshRun } from './desk.ts'

/** An engine with a queue of its own, in which nothing waits. */
export interface OpenEngine {
  readonly engine: Engine
  /** Another engine over the same queue, as another process has it. */
  readonly another: () => Promise<Engine>
  /** For an engine that is `transactional`. */
  readonly begin?: () => Promise<{
    readonly within: unknown
    readonly commit: () => Promise<void>
    readonly rollback: () => Promise<void>
  }>
  /** Ends the engines and removes the queue. */
  readonly close: () => Promise<void>
}

/** How the contract plays with a binding. */
export interface EngineHarness {
  readonly open: () => Promise<OpenEngine>
  /** Of all engines that it opens. */
  readonly capabilities: ReadonlySet<EngineCapability>
  /** A time that timers of the engine keep well apart from now, in milliseconds. Default: 2,000. */
  readonly timerMs?: number
  /** How long a case may take, in milliseconds. Default: 60,000. */
  readonly limitMs?: number
  /** How often a case of chance is played. Default: 100. */
  readonly rounds?: number
}

/** A promise of the `Engine` port, bound to a binding. It needs no test framework: `run` rejects if the promise is broken. */
export interface EngineContractCase {
  readonly promise: string
  /** Set where the binding says that it cannot do this. */
  readonly lacks?: EngineCapability
  readonly run: () => Promise<void>
}

interface Scene extends OpenEngine {
  readonly desk: Desk
  readonly timerMs: number
  readonly rounds: number
  /** Works the queue, until the case is over. */
  readonly work: (options?: {
    readonly engine?: Engine
    readonly desk?: Desk
    readonly concurrency?: number
  }) => Promise<EngineWorker>
  /** Resolves when everything that was due before has been delivered: a run that was woken last has. */
  readonly settle: (desk?: Desk) => Promise<void>
}

interface Claim {
  readonly promise: string
  readonly needs?: EngineCapability
  readonly play: (scene: Scene) => Promise<void>
}

function fail(what: string): never {
  throw new Error(`The engine breaks its contract: ${what}.`)
}

function requireEqual(found: unknown, expected: unknown, what: string): void {
  const difference = describeDifference(found, expected)
  if (difference) fail(`${what} should be ${difference.expected}, but is ${difference.found}`)
}

const hour = 3_600_000

const claims: readonly Claim[] = [
  {
    promise: 'a wake is delivered, with the data that starts the run',
    async play({ engine, desk, work }) {
      const runId = freshRun('start')
      const start = { agent: 'clerk', input: 'Straße 💡', options: { limits: { maxTurns: 3 } } }
      await engine.wake({ runId, start })
      await work()
      const { wake, end } = await desk.delivered(runId)
      requireEqual(wake.start, start, 'the start that is delivered')
      end()
    },
  },
  {
    promise: 'of two wakes that are one, the start is kept, whichever of them has it',
    async play({ engine, desk, work }) {
      const [first, second] = [freshRun('start first'), freshRun('start second')]
      const start = { agent: 'clerk', input: 'Hello.' }
      await engine.wake({ runId: first, start })
      await engine.wake({ runId: first })
      await engine.wake({ runId: second })
      await engine.wake({ runId: second, start })
      await work()
      for (const runId of [first, second]) {
        const { wake, end } = await desk.delivered(runId)
        requireEqual(wake.start, start, 'the start that is delivered')
        end()
      }
    },
  },
  {
    promise: 'a wake that nobody works on waits for a worker',
    async play({ engine, desk, work, another }) {
      const runs = [freshRun('one'), freshRun('two'), freshRun('three')]
      for (const runId of runs) await engine.wake({ runId })
      await work({ engine: await another() })
      for (const runId of runs) (await desk.delivered(runId)).end()
    },
  },
  {
    promise: 'wakes of one run that wait are one',
    async play({ engine, desk, work, settle }) {
      const runId = freshRun('merged')
      for (let count = 0; count < 20; count++) await engine.wake({ runId })
      await work()
      ;(await desk.delivered(runId)).end()
      await settle()
      for (const each of desk.open()) each.end()
      await settle()
      // A wake that comes while its run is just being taken may lead to a second drive.
      if (desk.of(runId).length > 2) fail(`20 wakes of a run led to ${desk.of(runId).length} drives`)
    },
  },
  {
    promise: 'a wake of now does not wait for a timer that was set before',
    async play({ engine, desk, work }) {
      const runId = freshRun('earlier')
      await engine.wake({ runId, at: Date.now() + hour })
      await work()
      await engine.wake({ runId })
      ;(await desk.delivered(runId)).end()
    },
  },
  {
    promise: 'an earlier timer takes the place of a later one',
    async play({ engine, desk, work, timerMs }) {
      const runId = freshRun('earlier timer')
      await work()
      await engine.wake({ runId, at: Date.now() + hour })
      await engine.wake({ runId, at: Date.now() + timerMs })
      ;(await desk.delivered(runId)).end()
    },
  },
  {
    promise: 'a later timer does not delay a wake of now',
    async play({ engine, desk, work }) {
      const runId = freshRun('later timer')
      await engine.wake({ runId })
      await engine.wake({ runId, at: Date.now() + hour })
      await work()
      ;(await desk.delivered(runId)).end()
    },
  },
  {
    promise: 'a timer is not delivered before its time, and is delivered with no worker there when it came',
    async play({ engine, desk, work, timerMs, settle }) {
      const runId = freshRun('timer')
      const worker = await work({ desk: new Desk({ isAnswering: true }) })
      const at = Date.now() + timerMs
      await engine.wake({ runId, at })
      await worker.stop(0)
      await work()
      await settle()
      const delivery = await desk.delivered(runId)
      if (delivery.at < at - 100) fail(`a timer was delivered ${at - delivery.at} ms too early`)
      delivery.end()
    },
  },
  {
    promise: 'a wake while its run is driven leads to another drive, after that one',
    async play({ engine, desk, work, settle }) {
      const runId = freshRun('driven')
      await work()
      await engine.wake({ runId })
      const first = await desk.delivered(runId)
      await engine.wake({ runId })
      if (engine.capabilities.has('exclusivePerKey')) {
        await settle()
        requireEqual(desk.of(runId).length, 1, 'the number of drives while the first one is under way')
      }
      first.end()
      ;(await desk.delivered(runId, 2)).end()
    },
  },
  {
    promise: 'a timer that is set while its run is driven is kept, and so is a wake of now after it',
    async play({ engine, desk, work }) {
      const runId = freshRun('rested')
      await work()
      await engine.wake({ runId })
      const first = await desk.delivered(runId)
      await engine.wake({ runId, at: Date.now() + hour })
      await engine.wake({ runId })
      first.end()
      ;(await desk.delivered(runId, 2)).end()
    },
  },
  {
    promise: 'no wake is lost at the end of a drive, however the two pass each other',
    async play({ engine, desk, work, rounds }) {
      const runId = freshRun('edge')
      await work()
      await engine.wake({ runId })
      for (let round = 0, seen = 1; round < rounds; round++, seen = desk.of(runId).length) {
        const delivery = await desk.delivered(runId, seen)
        for (const each of desk.open(runId)) if (each !== delivery) each.end()
        const woken = engine.wake({ runId })
        if (round % 2 === 0) await woken
        delivery.end()
        await woken
        await desk.delivered(runId, seen + 1)
      }
    },
  },
  {
    promise: 'a drive that fails is delivered again, with what started it',
    async play({ engine, desk, work }) {
      const runId = freshRun('failing')
      const start = { agent: 'clerk', input: 'Hello.' }
      await work()
      await engine.wake({ runId, start, tenant: 'acme' })
      ;(await desk.delivered(runId)).fail()
      ;(await desk.delivered(runId, 2)).fail()
      const third = await desk.delivered(runId, 3)
      requireEqual(third.wake.start, start, 'the start that is delivered again')
      third.end()
    },
  },
  {
    promise: 'a worker that stops hands over what has not ended, and another one gets it',
    async play({ engine, desk, work, another }) {
      const runId = freshRun('handed over')
      const worker = await work()
      await engine.wake({ runId })
      const first = await desk.delivered(runId)
      const stopping = worker.stop(0)
      await aborted(first.signal)
      await stopping
      const other = new Desk()
      await work({ engine: await another(), desk: other })
      ;(await other.delivered(runId)).end()
      first.end()
    },
  },
  {
    promise: 'a worker that stops lets what is in its last lines end, and takes no more',
    async play({ engine, desk, work }) {
      const [runId, late] = [freshRun('ending'), freshRun('late')]
      const worker = await work()
      await engine.wake({ runId })
      const first = await desk.delivered(runId)
      first.signal.addEventListener('abort', () => first.end())
      await worker.stop(60_000)
      requireEqual(first.isOver, true, 'that the drive has ended when the worker has stopped')
      await engine.wake({ runId: late })
      const other = new Desk({ isAnswering: true })
      await work({ desk: other })
      await other.delivered(late)
      requireEqual(desk.of(late).length, 0, 'the number of drives of a worker that has stopped')
    },
  },
  {
    promise: 'a worker drives as many runs at a time as it may, and no more',
    async play({ engine, desk, work }) {
      const runs = Array.from({ length: 8 }, (_, place) => freshRun(`many ${place}`))
      for (const runId of runs) await engine.wake({ runId })
      await work({ concurrency: 3 })
      await desk.until(() => desk.open().length === 3)
      for (let left = runs.length; left > 0; left--) {
        await desk.until(() => desk.open().length >= Math.min(3, left))
        desk.open()[0]?.end()
      }
      requireEqual(desk.mostAtOnce, 3, 'the most drives at one time')
      requireEqual(
        new Set(desk.deliveries.map(({ wake }) => wake.runId)).size,
        8,
        'the number of runs driven',
      )
    },
  },
  {
    promise: 'several workers share the runs, and each run is driven by one at a time',
    needs: 'exclusivePerKey',
    async play({ engine, desk, work, another }) {
      const runs = Array.from({ length: 30 }, (_, place) => freshRun(`shared ${place}`))
      await work({ concurrency: 5 })
      await work({ engine: await another(), concurrency: 5 })
      const ending = setInterval(() => desk.open()[0]?.end(), 1)
      for (let round = 0; round < 3; round++) for (const runId of runs) await engine.wake({ runId })
      for (const runId of runs) await desk.delivered(runId)
      await desk.until(() => desk.open().length === 0)
      clearInterval(ending)
      requireEqual(desk.mostOfRun, 1, 'the most drives of a run at one time')
    },
  },
  {
    promise: 'a run of a higher priority is driven before those that waited longer',
    needs: 'priorities',
    async play({ engine, desk, work }) {
      const plain = Array.from({ length: 5 }, (_, place) => freshRun(`plain ${place}`))
      for (const runId of plain) await engine.wake({ runId })
      const urgent = freshRun('urgent')
      await engine.wake({ runId: urgent, priority: 10 })
      await work({ concurrency: 1 })
      await desk.until(() => desk.deliveries.length === 1)
      requireEqual(desk.deliveries[0]?.wake.runId, urgent, 'the run that is driven first')
      await endAll(desk, [urgent, ...plain])
    },
  },
  {
    promise: 'runs of one key are driven one at a time, also after a failure',
    needs: 'exclusivePerKey',
    async play({ engine, desk, work, another }) {
      const key = `session ${crypto.randomUUID()}`
      const runs = Array.from({ length: 4 }, (_, place) => freshRun(`turn ${place}`))
      for (const runId of runs) await engine.wake({ runId, key })
      await work({ concurrency: 4 })
      await work({ engine: await another(), concurrency: 4 })
      await desk.until(() => desk.open().length > 0)
      desk.open()[0]?.fail()
      const ended = new Set<RunId>()
      while (ended.size < runs.length) {
        await desk.until(() => desk.open().length > 0)
        const [delivery] = desk.open()
        delivery?.end()
        if (delivery) ended.add(delivery.wake.runId)
      }
      requireEqual(desk.mostAtOnce, 1, 'the most runs of a key that are driven at a time')
    },
  },
  {
    promise: 'a tenant with many runs does not keep another one waiting',
    needs: 'fairness',
    async play({ engine, desk, work }) {
      const noisy = Array.from({ length: 40 }, (_, place) => freshRun(`noisy ${place}`))
      for (const runId of noisy) await engine.wake({ runId, tenant: 'noisy' })
      const quiet = freshRun('quiet')
      await engine.wake({ runId: quiet, tenant: 'quiet' })
      await work({ concurrency: 4 })
      const ending = setInterval(
        () =>
          desk
            .open()
            .find(({ wake }) => wake.runId !== quiet)
            ?.end(),
        5,
      )
      await desk.delivered(quiet)
      clearInterval(ending)
      const before = desk.deliveries.findIndex(({ wake }) => wake.runId === quiet)
      if (before > 20) fail(`${before} runs of one tenant were driven before the one run of another`)
      await endAll(desk, [quiet, ...noisy])
    },
  },
  {
    promise: 'a wake within a transaction comes with its commit, and does not come after a rollback',
    needs: 'transactional',
    async play({ engine, desk, work, begin, settle }) {
      if (begin === undefined) fail('the harness of a transactional engine has no begin')
      await work()
      const [kept, dropped] = [freshRun('committed'), freshRun('rolled back')]
      const one = await begin()
      await engine.wake({ runId: kept }, one.within)
      const other = await begin()
      await engine.wake({ runId: dropped }, other.within)
      await settle()
      requireEqual(desk.of(kept).length, 0, 'the number of drives before the commit')
      await other.rollback()
      await one.commit()
      ;(await desk.delivered(kept)).end()
      await settle()
      requireEqual(desk.of(dropped).length, 0, 'the number of drives after a rollback')
    },
  },
]

async function endAll(desk: Desk, runs: readonly RunId[]): Promise<void> {
  for (const runId of runs) {
    await desk.until(() => desk.of(runId).length > 0 || desk.open().length > 0)
    while (desk.of(runId).length === 0) {
      desk.open()[0]?.end()
      await desk.until(() => desk.of(runId).length > 0 || desk.open().length > 0)
    }
  }
  for (const each of desk.open()) each.end()
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

/**
 * Binds every promise of the `Engine` port to a binding, with the real engine behind it. Each case opens a queue of its own. A
 * case that the binding says it cannot do `lacks` that capability, and its `run` does nothing: a suite prints it as skipped.
 */
export function engineContract(harness: EngineHarness): readonly EngineContractCase[] {
  return claims.map(({ promise, needs, play }) => {
    if (needs !== undefined && !harness.capabilities.has(needs)) {
      return { promise, lacks: needs, run: () => Promise.resolve() }
    }
    return { promise, run: () => playScene(harness, play) }
  })
}

async function playScene(harness: EngineHarness, play: Claim['play']): Promise<void> {
  const open = await harness.open()
  const { engine } = open
  requireEqual(
    [...engine.capabilities].sort(),
    [...harness.capabilities].sort(),
    'the capabilities of the engine',
  )
  const desk = new Desk()
  const workers: EngineWorker[] = []
  const scene: Scene = {
    ...open,
    engine,
    desk,
    timerMs: harness.timerMs ?? 2_000,
    rounds: harness.rounds ?? 100,
    async work({ engine: by = engine, desk: at = desk, concurrency = 5 } = {}) {
      const worker = await by.work(at.drive, { concurrency })
      workers.push(worker)
      return worker
    },
    async settle(at = desk) {
      const last = freshRun('last')
      await engine.wake({ runId: last })
      ;(await at.delivered(last)).end()
    },
  }
  const { limitMs = 60_000 } = harness
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const delivered = desk.deliveries.map(({ wake, isOver }) => `${wake.runId}${isOver ? '' : ' (open)'}`)
      const error = new Error(
        `The engine breaks its contract: nothing has come of it within ${limitMs} ms. Delivered: ${delivered.slice(-20).join(', ') || 'nothing'}.`,
      )
      reject(error)
    }, limitMs)
  })
  try {
    await Promise.race([play(scene), late])
  } finally {
    clearTimeout(timer)
    for (const each of desk.open()) each.end()
    await Promise.all(workers.map((worker) => worker.stop(0)))
    await open.close()
  }
}
