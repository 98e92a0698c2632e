import type { Agent, Ledger, RunId, Runtime, RuntimeEvent } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { deriveRunId } from '@tallystick/core/vocabulary'
import { checkLaws } from '@tallystick/testkit'
import { createClient, type EngineClient } from '../client.ts'
import type { Engine, EngineCapability, EngineWorker } from '../engine.ts'
import { startWorker, type WorkerOptions } from '../worker.ts'
import { World } from './run-world.ts'

/** A ledger and a queue of their own, both empty. */
export interface OpenSite {
  /** Opens both, as one process does. */
  readonly open: () => Promise<{ readonly ledger: Ledger; readonly engine: Engine }>
  /** Closes what was opened, and removes the store and the queue. */
  readonly close: () => Promise<void>
}

/** How the contract plays real runs over a binding. */
export interface RunsHarness {
  readonly open: () => Promise<OpenSite>
  /** A time that timers of the engine keep well apart from now, in milliseconds. Default: 2,000. */
  readonly timerMs?: number
  /** How long a case may take, in milliseconds. Default: 60,000. */
  readonly limitMs?: number
  /** How often a case of chance is played. Default: 20. */
  readonly rounds?: number
  /** Abilities that the engine lacks: `start`, carry how a run begins that is not on record yet. */
  readonly lacks?: readonly 'start'[]
}

/** A promise about runs that an engine drives. It needs no test framework: `run` rejects if the promise is broken. */
export interface RunsContractCase {
  readonly promise: string
  /** Set if the binding says that it cannot do this. */
  readonly lacks?: EngineCapability | 'start'
  readonly run: () => Promise<void>
}

/** A process, with everything of its own but the world. */
interface Site {
  readonly ledger: Ledger
  readonly engine: Engine
  readonly runtime: Runtime
  readonly agent: Agent
  readonly client: EngineClient
}

interface Scene {
  readonly world: World
  /** A process that drives nothing, such as a web server. */
  readonly web: Site
  readonly timerMs: number
  readonly rounds: number
  readonly open: (version?: number) => Promise<Site>
  /** A process that drives, until the case is over. */
  readonly work: (
    options?: Pick<WorkerOptions, 'concurrency' | 'graceMs' | 'parkMs' | 'maxMs'> & {
      readonly version?: number
    },
  ) => Promise<EngineWorker>
  /** Resolves once so many approvals were asked for in all. Returns the last one. */
  readonly asked: (count?: number) => Promise<Asked>
  readonly untilDone: (...runs: readonly RunId[]) => Promise<void>
  readonly eventsOf: (runId: RunId) => Promise<readonly RuntimeEvent[]>
}

interface Asked {
  readonly runId: RunId
  readonly toolCallId: string
}

interface Claim {
  readonly promise: string
  readonly needs?: 'start'
  readonly play: (scene: Scene) => Promise<void>
}

function fail(what: string): never {
  throw new Error(`The engine breaks its contract: ${what}.`)
}

function requireEqual(found: unknown, expected: unknown, what: string): void {
  const [is, should] = [JSON.stringify(found), JSON.stringify(expected)]
  if (is !== should) fail(`${what} should be ${should}, but is ${is}`)
}

const approve = ({ toolCallId }: Asked) => ({ type: 'approve', toolCallId, by: 'ada' }) as const
const freshKey = (name: string): string => `${name} ${crypto.randomUUID()}`

const claims: readonly Claim[] = [
  {
    promise: 'a run that is enqueued twice under a key is one run, before and after it is driven',
    async play({ web, work, open, world, untilDone }) {
      const idempotencyKey = freshKey('order')
      const enqueue = ({ client, agent }: Site): Promise<RunId> =>
        client.enqueue(agent, 'Do: wait', { idempotencyKey })
      const [one, other] = await Promise.all([enqueue(web), enqueue(await open())])
      requireEqual(other, one, 'the id of the second start')
      await work()
      await world.until(() => world.begun.length > 0)
      requireEqual(await enqueue(web), one, 'the id of a start of a run that is driven')
      await untilDone(one)
      requireEqual(await enqueue(web), one, 'the id of a start of a run that has ended')
      requireEqual(world.begun.length, 1, 'the number of calls')
    },
  },
  {
    promise: 'a start that is delivered again begins one run',
    needs: 'start',
    async play({ web, work, world, untilDone }) {
      const runId = deriveRunId(freshKey('start'))
      const wake = { runId, start: { agent: web.agent.name, input: 'Do: wait' } }
      await Promise.all([web.engine.wake(wake), web.engine.wake(wake)])
      await Promise.all([work(), work()])
      await world.until(() => world.begun.length > 0)
      await web.engine.wake(wake)
      await untilDone(runId)
      await web.engine.wake(wake)
      await world.until(() => world.count('done', runId) > 1)
      requireEqual(world.begun.length, 1, 'the number of calls')
    },
  },
  {
    promise: 'an approval from another process runs the tool once, though it is put and woken twice',
    async play({ web, open, work, asked, world, untilDone }) {
      await Promise.all([work(), work()])
      const runId = await web.client.enqueue(web.agent, 'Do: pay')
      const question = await asked()
      const other = await open()
      const post = ({ client }: Site, key: string) => client.post(runId, approve(question), { key })
      await Promise.all([post(web, 'a'), post(other, 'a'), post(other, 'b'), web.engine.wake({ runId })])
      await untilDone(runId)
      requireEqual(world.effects.size, 1, 'the number of calls with an effect')
    },
  },
  {
    promise: 'an approval for a call of a child run comes to it by way of the root',
    async play({ web, work, asked, untilDone, world }) {
      await work()
      const runId = await web.client.enqueue(web.agent, 'Do: clerk')
      const question = await asked()
      if (question.runId === runId) fail('the call was one of the root')
      const { accepted } = await web.client.post(question.runId, approve(question), { key: 'a' })
      requireEqual(accepted, true, 'that the approval is accepted')
      await untilDone(runId)
      requireEqual(world.effects.size, 1, 'the number of calls with an effect')
    },
  },
  {
    promise: 'a deferred call ends at its deadline, though no worker was there when it was deferred',
    async play({ web, work, world, untilDone, eventsOf }) {
      const first = await work()
      const runId = await web.client.enqueue(web.agent, 'Do: wait')
      // On a busy machine the deadline may have come by then, and the rest is another one.
      await world.until(() => world.rests.length > 0)
      await first.stop(60_000)
      await work()
      await untilDone(runId)
      const outcomes = (await eventsOf(runId)).filter(({ type }) => type === 'tool_result')
      requireEqual(outcomes.length, 1, 'the number of results')
    },
  },
  {
    promise: 'a deferred call is settled from another process',
    async play({ web, work, world, untilDone }) {
      await work()
      const runId = await web.client.enqueue(web.agent, 'Do: order')
      await world.until(() => world.count('waiting', runId) > 0)
      const { toolCallId = '' } = world.begun[0] ?? {}
      const content = [{ type: 'text', text: 'It came.' }] as const
      const settle = { type: 'settle', toolCallId, outcome: 'success', content } as const
      await web.client.post(runId, settle, { key: 'settled' })
      await untilDone(runId)
    },
  },
  {
    promise:
      'a run that waits for the end of a retry-after leaves its place to others, and continues at its time',
    async play({ web, work, world, timerMs, untilDone }) {
      // Long enough for a busy machine to come to it before it is over.
      world.refusals.push(timerMs + 3_000)
      await work({ concurrency: 1, parkMs: 50 })
      const refused = await web.client.enqueue(web.agent, 'Do: wait')
      await world.until(() => world.count('parked', refused) > 0)
      const wakeAt = world.rests.find(({ status }) => status === 'parked')?.wakeAt ?? 0
      const other = await web.client.enqueue(web.agent, 'Do:')
      await untilDone(other)
      await untilDone(refused)
      const order = world.rests.filter(({ status }) => status === 'done').map(({ runId }) => runId)
      requireEqual(order, [other, refused], 'the order in which the runs end')
      if (Date.now() < wakeAt) fail('the run went on before its time')
    },
  },
  {
    promise: 'a run that is driven is cancelled from another process',
    async play({ web, work, world, untilDone, eventsOf }) {
      await work()
      const runId = await web.client.enqueue(web.agent, 'Do: ship')
      await world.until(() => world.begun.length > 0)
      await web.client.post(runId, { type: 'cancel', by: 'ada' }, { key: 'stop' })
      await untilDone(runId)
      const last = (await eventsOf(runId)).at(-1)
      requireEqual(last?.type === 'run_finished' && last.reason, 'cancelled', 'the reason of the end')
    },
  },
  {
    promise: 'no message is lost that comes as a stretch ends',
    async play({ web, work, world, asked, rounds, untilDone, eventsOf }) {
      await Promise.all([work(), work()])
      const limits = { maxTurns: rounds + 5, maxToolCalls: rounds + 5 }
      const task = `Do: ${'pay '.repeat(rounds).trim()}`
      const runId = await web.client.enqueue(web.agent, task, { limits })
      let posted: Promise<unknown> = Promise.resolve()
      for (let round = 1; round <= rounds; round++) {
        const question = await asked(round)
        const steer = {
          type: 'steer',
          receipt: `steer ${round}`,
          message: { role: 'user', parts: [{ type: 'text', text: `Hurry, ${round}.` }] },
        } as const
        world.onPaid = () => {
          posted = afterTurns((round * 7) % 40).then(() =>
            web.client.post(runId, steer, { key: `steer ${round}` }),
          )
        }
        await web.client.post(runId, approve(question), { key: `approve ${round}` })
        await world.until(() => world.effects.size === round)
        await posted
      }
      await untilDone(runId)
      const events = await eventsOf(runId)
      const received = events.filter(({ type }) => type === 'input_received').length - 1
      // The last one may come after the end.
      if (received < rounds - 1) fail(`of ${rounds} messages ${received} came to the run`)
    },
  },
  {
    promise: 'messages for a run are answered in the order in which they came, whichever worker drives it',
    async play({ web, open, work, asked, rounds, untilDone, eventsOf }) {
      await Promise.all([work(), work()])
      const runId = await web.client.enqueue(web.agent, 'Do: pay', { limits: { maxTurns: rounds + 5 } })
      const question = await asked()
      const other = await open()
      const keys = Array.from({ length: rounds }, (_, place) => `message ${place}`)
      for (const [place, key] of keys.entries()) {
        if (place === rounds >> 1) await web.client.post(runId, approve(question), { key: 'approve' })
        const message = { role: 'user', parts: [{ type: 'text', text: `And ${place}.` }] } as const
        const { client } = place % 2 === 0 ? web : other
        const { accepted } = await client.post(runId, { type: 'queue', receipt: key, message }, { key })
        if (accepted) continue
        // The run has ended.
        keys.length = place
        break
      }
      await untilDone(runId)
      const received = (await eventsOf(runId)).flatMap((event) =>
        event.type === 'input_received' && event.receipt !== undefined ? [event.receipt] : [],
      )
      requireEqual(received, keys, 'the messages in their order')
      if (keys.length < rounds >> 1) fail('a run that waited took no messages')
    },
  },
  {
    promise: 'a worker that stops lets a call end that is under way, and another one continues',
    async play({ web, work, world, untilDone }) {
      const first = await work({ graceMs: 60_000 })
      const runId = await web.client.enqueue(web.agent, 'Do: ship')
      await world.until(() => world.begun.length > 0)
      const stopped = first.stop(60_000)
      world.gate.resolve('Shipped.')
      await stopped
      await work()
      await untilDone(runId)
      requireEqual(world.begun.length, 1, 'the number of calls')
    },
  },
  {
    promise: 'a worker that stops in the middle of a call hands over, and the effect is not repeated',
    async play({ web, work, world, untilDone }) {
      const first = await work({ graceMs: 1 })
      const runId = await web.client.enqueue(web.agent, 'Do: ship')
      await world.until(() => world.begun.length > 0)
      await first.stop(0)
      await work()
      await untilDone(runId)
      requireEqual([...world.effects.values()], [1], 'how often the call had its effect')
    },
  },
  {
    promise: 'a run whose process died with its lease goes on when the lease ends',
    async play({ web, work, untilDone, timerMs }) {
      const runId = await web.client.enqueue(web.agent, 'Do: wait')
      await web.ledger.acquire(runId, { holder: 'another machine', forMs: timerMs })
      await work()
      await untilDone(runId)
    },
  },
  {
    promise: 'runs that wait go on with a new version of their agent',
    async play({ web, open, work, world, asked, untilDone }) {
      const first = await work()
      const runs = await Promise.all(
        Array.from({ length: 3 }, () => web.client.enqueue(web.agent, 'Do: pay pay')),
      )
      await asked(3)
      await world.until(() => runs.every((runId) => world.count('waiting', runId) > 0))
      await first.stop(60_000)
      await work({ version: 2 })
      const newer = await open(2)
      const seen = new Set<string>()
      while (seen.size < 6) {
        await asked(seen.size + 1)
        for await (const { runId, toolCallId } of newer.ledger.find({ types: ['approval_requested'] })) {
          if (toolCallId === undefined || seen.has(toolCallId)) continue
          seen.add(toolCallId)
          const poster = seen.size % 2 === 0 ? newer : web
          await poster.client.post(runId, approve({ runId, toolCallId }), { key: toolCallId })
        }
      }
      await untilDone(...runs)
      requireEqual(world.effects.size, 6, 'the number of calls with an effect')
    },
  },
  {
    promise: 'several workers share many runs, and each has its effect once',
    async play({ web, work, world, untilDone }) {
      world.gate.resolve('Shipped.')
      await Promise.all([work(), work(), work()])
      const runs = await Promise.all(
        Array.from({ length: 30 }, () => web.client.enqueue(web.agent, 'Do: ship ship')),
      )
      await untilDone(...runs)
      requireEqual(world.effects.size, 60, 'the number of calls with an effect')
    },
  },
  {
    promise: 'all runs of a session are driven, one at a time',
    needs: 'start',
    async play({ web, work, world, untilDone, eventsOf }) {
      world.gate.resolve('Shipped.')
      const sessionId = freshKey('session')
      const runs: RunId[] = []
      for (let turn = 0; turn < 3; turn++)
        runs.push(await web.client.enqueue(web.agent, 'Do: ship', { sessionId }))
      await Promise.all([work(), work()])
      await untilDone(...runs)
      const played: RunId[] = []
      for await (const { runId } of web.ledger.runs({ sessionId })) played.unshift(runId)
      const sorted = (ids: readonly RunId[]) => [...ids].sort()
      requireEqual(sorted(played), sorted(runs), 'the runs of the session')
      const events = await Promise.all(played.map(eventsOf))
      for (const [place, own] of events.entries()) {
        const before = events[place - 1]?.at(-1)
        if (before && (own[0]?.at ?? 0) < before.at)
          fail('a run of a session began before the one before it ended')
      }
    },
  },
]

async function collect<T>(values: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = []
  for await (const value of values) found.push(value)
  return found
}

/** Lets other work go on that many times. */
async function afterTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => void setImmediate(resolve))
}

/**
 * Binds promises about runs to a binding, with the real engine and a real store behind it: runtimes, workers and clients are
 * those of the application, only the models say a script. After each case every run has to obey the laws, and no call may have
 * had its effect twice.
 */
export function runsContract(harness: RunsHarness): readonly RunsContractCase[] {
  return claims.map(({ promise, needs, play }) => {
    if (needs !== undefined && harness.lacks?.includes(needs)) {
      return { promise, lacks: needs, run: () => Promise.resolve() }
    }
    return { promise, run: () => playScene(harness, play) }
  })
}

async function playScene(harness: RunsHarness, play: Claim['play']): Promise<void> {
  const { timerMs = 2_000, rounds = 20, limitMs = 60_000 } = harness
  const store = await harness.open()
  const world = new World(timerMs)
  const workers: EngineWorker[] = []
  const open = async (version?: number): Promise<Site> => {
    const { ledger, engine } = await store.open()
    const { runtime, agent } = world.open(ledger, version)
    return { ledger, engine, runtime, agent, client: createClient({ runtime, engine }) }
  }
  const web = await open()
  const scene: Scene = {
    ...{ world, web, timerMs, rounds, open },
    async work({ version, ...options } = {}) {
      const { runtime, engine } = await open(version)
      const worker = await startWorker({ ...options, runtime, engine, onRest: (rest) => world.rested(rest) })
      workers.push(worker)
      return worker
    },
    async asked(count = 1) {
      let last: Asked | undefined
      await world.until(async () => {
        const events = await collect(web.ledger.find({ types: ['approval_requested'] }))
        const { runId, toolCallId } = events.at(-1) ?? {}
        if (runId && toolCallId) last = { runId, toolCallId }
        return events.length >= count
      })
      return last as Asked
    },
    untilDone: (...runs) => world.until(() => runs.every((runId) => world.count('done', runId) > 0)),
    eventsOf: (runId) => collect(web.ledger.read(runId)),
  }
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const rests = world.rests.map(({ runId, status }) => `${runId.slice(-4)} ${status}`).slice(-20)
      const seen = `Calls begun: ${world.begun.length}. Last stretches: ${rests.join(', ') || 'none'}`
      reject(
        new Error(`The engine breaks its contract: nothing has come of it within ${limitMs} ms. ${seen}.`),
      )
    }, limitMs)
  })
  try {
    await Promise.race([play(scene), late])
    await judge(web.ledger, world)
  } finally {
    clearTimeout(timer)
    world.gate.resolve('Shipped.')
    await Promise.all(workers.map((worker) => worker.stop(5_000)))
    await store.close()
  }
}

/** Every run obeys the laws, and no call had its effect twice. */
async function judge(ledger: Ledger, { effects }: World): Promise<void> {
  for await (const { runId } of ledger.runs()) {
    const events = await collect(ledger.read(runId))
    auditAll(events)
    const [violation] = checkLaws(events)
    if (violation) fail(`run ${runId} breaks law ${violation.law} at ${violation.seq}: ${violation.what}`)
  }
  for (const [key, count] of effects) if (count > 1) fail(`the call of ${key} had its effect ${count} times`)
}
