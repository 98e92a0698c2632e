import { describe, expect, it } from 'vitest'
import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Ledger,
  type Rest,
  type RunId,
} from '@tallystick/core'
import { findOpenRoot } from '@tallystick/core/internal'
import { createClient, startWorker, type EngineWorker, type Wake } from '@tallystick/engines'
import { pollingEngine } from '@tallystick/engines/polling'
import {
  manualClock,
  scriptedModel,
  testTool,
  waitUntilSettled,
  type ScriptedStep,
} from '@tallystick/testkit'

/** Processes on one ledger: a web server that drives nothing, and workers. */
function office(steps: readonly ScriptedStep[], { ledger: given }: { ledger?: Ledger } = {}) {
  const clock = manualClock()
  const ledger = given ?? memoryLedger({ clock })
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const model = scriptedModel(steps)
  const clerk = defineAgent({
    name: 'clerk',
    description: 'Pays.',
    instructions: 'Pay.',
    model,
    tools: [pay],
  })
  const agent = defineAgent({
    ...{ name: 'agent', instructions: 'Work.', model, tools: [pay, agentTool(clerk)] },
  })
  const reported: unknown[] = []
  const report = (error: unknown): void => void reported.push(error)
  const open = (agents = [agent]) => createRuntime({ ledger, agents, host: { clock, report } })
  const engine = () => pollingEngine({ ledger, clock, report })
  const client = createClient({ runtime: open(), engine: engine() })
  const rests: Rest[] = []
  const workers: EngineWorker[] = []
  const work = async (agents = [agent]): Promise<EngineWorker> => {
    const worker = await startWorker({
      ...{ runtime: open(agents), engine: engine() },
      onRest: (rest) => void rests.push(rest),
    })
    workers.push(worker)
    return worker
  }
  /** Lets time pass until that holds. */
  const until = async (holds: () => boolean): Promise<void> => {
    for (let round = 0; !holds(); round++) {
      if (round === 1_000) throw new Error('Nothing has come of it.')
      for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => void setImmediate(resolve))
      clock.advance(250)
    }
  }
  const stop = () => waitUntilSettled(clock, Promise.all(workers.map((worker) => worker.stop(1_000))))
  return { agent, clock, ledger, pay, open, client, rests, work, until, stop, reported }
}

describe('the polling engine', () => {
  it('drives what another process has enqueued, and continues it after a command', async () => {
    const set = office([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }])
    await set.work()
    const runId = await set.client.enqueue(set.agent, 'Pay.')
    await set.until(() => set.rests.length === 1)
    expect(set.rests).toMatchObject([{ runId, status: 'waiting', pending: false }])
    const { pendingApprovals } = await set.open().resume(runId).result
    const command = { type: 'approve', toolCallId: pendingApprovals[0]!.toolCallId, by: 'ada' } as const
    expect(await set.client.post(runId, command, { key: 'a' })).toEqual({ accepted: true })
    await set.until(() => set.rests.length === 2)
    expect(set.rests[1]).toMatchObject({ runId, status: 'done' })
    expect(set.pay.runs).toHaveLength(1)
    await set.stop()
    expect(set.reported).toEqual([])
  })

  it('waits longer after each failure, and drives the run once a worker can', async () => {
    const set = office([{ text: 'Hi.' }])
    const other = defineAgent({ name: 'other', instructions: '-', model: scriptedModel([]) })
    await set.work([other])
    const runId = await set.client.enqueue(set.agent, 'Hello.')
    await set.until(() => set.reported.length === 3)
    expect(String(set.reported[0])).toMatch(/agent/)
    const asked = set.clock.now()
    await set.until(() => set.reported.length === 4)
    expect(set.clock.now() - asked).toBeGreaterThan(10_000)
    await set.work()
    await set.until(() => set.rests.length === 1)
    expect(set.rests).toMatchObject([{ runId, status: 'done' }])
    await set.stop()
  })

  it('leaves a run for a while that another process drives', async () => {
    const set = office([])
    await set.client.enqueue(set.agent, 'Hello.')
    const engine = pollingEngine({ ledger: set.ledger, clock: set.clock })
    let drives = 0
    const lose = async ({ runId }: Wake): Promise<Rest> => {
      drives++
      await engine.wake({ runId, at: set.clock.now() + 12_000 })
      return { status: 'lost', runId, seq: 1, pending: false }
    }
    const worker = await engine.work(lose, { concurrency: 1 })
    await set.until(() => drives === 1)
    const begun = set.clock.now()
    await set.until(() => drives === 4)
    expect(set.clock.now() - begun).toBeGreaterThanOrEqual(2_750)
    await worker.stop(1_000)
  })

  it('drives the others where the first that is due cannot be read', async () => {
    const ledger = memoryLedger()
    const damaged = new Set<RunId>()
    const read: Ledger['read'] = (runId, range) => {
      if (damaged.has(runId)) throw new Error('It is damaged.')
      return ledger.read(runId, range)
    }
    const set = office([{ text: 'Hi.' }], { ledger: { ...ledger, read } })
    damaged.add(await set.client.enqueue(set.agent, 'One.'))
    const runId = await set.client.enqueue(set.agent, 'Two.')
    await set.work()
    await set.until(() => set.rests.length === 1 && set.reported.length === 2)
    expect(set.rests).toMatchObject([{ runId, status: 'done' }])
    expect(String(set.reported[0])).toMatch(/damaged/)
    await set.stop()
  })

  it('drives a child run by itself whose parent was dropped', async () => {
    const set = office([
      { toolCalls: [{ name: 'clerk', input: { task: 'Pay.' } }] },
      { toolCalls: [{ name: 'pay', input: {} }] },
    ])
    const result = set.open().run(set.agent, 'Pay.').result
    const { runId, pendingApprovals } = await waitUntilSettled(set.clock, result)
    const childId = pendingApprovals[0]!.runId
    expect(await findOpenRoot(set.ledger, childId)).toBe(runId)
    const read: Ledger['read'] = (id, range) => set.ledger.read(id, id === runId ? { fromSeq: 1_000 } : range)
    const head: Ledger['head'] = async (id) => (id === runId ? undefined : await set.ledger.head(id))
    expect(await findOpenRoot({ ...set.ledger, read, head }, childId)).toBe(childId)
    // A run above that has ended drives nothing any more.
    await waitUntilSettled(set.clock, set.open().resume(runId).cancel())
    await waitUntilSettled(set.clock, set.open().resume(runId).result)
    expect(await findOpenRoot(set.ledger, childId)).toBe(childId)
  })

  it('wakes a run of a session under the key of its start', async () => {
    const set = office([])
    const runId = await set.open().enqueue(set.agent, 'Hello.', { sessionId: 'chat' })
    const wakes: Wake[] = []
    const engine = {
      ...pollingEngine({ ledger: set.ledger }),
      wake: async (wake: Wake) => void wakes.push(wake),
    }
    const client = createClient({ runtime: set.open(), engine })
    await client.post(runId, { type: 'cancel' }, { key: 'a' })
    expect(wakes).toMatchObject([{ runId, key: 'chat' }])
  })

  it('keeps its process alive until it stops, though nothing is due', async () => {
    const set = office([])
    const worker = await set.work()
    await set.until(() => set.clock.pending > 0)
    await worker.stop(1_000)
    expect(set.clock.pending).toBe(0)
  })

  it('stops after its grace though its ledger does not answer', async () => {
    const clock = manualClock()
    const ledger = memoryLedger()
    const asked = Promise.withResolvers<void>()
    // oxlint-disable-next-line require-yield -- it never answers
    const due: Ledger['due'] = async function* () {
      asked.resolve()
      await new Promise(() => {})
    }
    const engine = pollingEngine({ ledger: { ...ledger, due }, clock })
    const worker = await engine.work(() => Promise.reject(new Error('Nothing is due.')), { concurrency: 1 })
    await asked.promise
    await waitUntilSettled(clock, worker.stop(1_000))
    expect(clock.pending).toBe(0)
  })

  it('refuses a start that is not on record', async () => {
    const set = office([])
    await expect(set.client.enqueue(set.agent, 'Hello.', { sessionId: 'chat' })).rejects.toThrow(/enqueue/)
  })
})
