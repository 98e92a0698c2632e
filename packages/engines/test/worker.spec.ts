import { expect, it } from 'vitest'
import {
  ConfigurationError,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Rest,
  type RunId,
} from '@tallystick/core'
import { createClient, createDrive, type Wake } from '@tallystick/engines'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'

/** A process that takes wakes of one engine, which only notes them. */
function office() {
  const ledger = memoryLedger()
  const begun = Promise.withResolvers<void>()
  const finish = Promise.withResolvers<string>()
  const slow = testTool({
    name: 'slow',
    run: () => {
      begun.resolve()
      return finish.promise
    },
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'slow', input: {} }] }, { text: 'Done.' }])
  const agent = defineAgent({ name: 'agent', instructions: 'Work.', model, tools: [slow] })
  const wakes: Wake[] = []
  const engine = {
    name: 'notes',
    capabilities: new Set<never>(),
    wake: (wake: Wake) => Promise.resolve(void wakes.push(wake)),
    work: () => Promise.reject(new Error('Nobody works on notes.')),
  }
  const open = () => createRuntime({ ledger, agents: [agent], host: { report: () => {} } })
  return { ledger, agent, open, wakes, engine, begun, finish }
}

const never = new AbortController().signal

it('looks again at the end of the lease when another process drives a run, which may be dead', async () => {
  const { ledger, agent, open, wakes, engine, begun, finish } = office()
  const run = open().run(agent, 'Work.')
  await begun.promise
  const drive = createDrive({ runtime: open(), engine })
  const rest = await drive({ runId: run.id, key: 'chat', tenant: 'acme' }, never)
  expect(rest).toMatchObject({ status: 'lost' })
  const { leftMs } = (await ledger.lease(run.id))!
  expect(wakes).toMatchObject([{ runId: run.id, key: 'chat', tenant: 'acme' }])
  expect(wakes[0]!.at! - rest.wakeAt!).toBeGreaterThanOrEqual(0)
  expect(leftMs).toBeGreaterThan(1_000)
  finish.resolve('fine')
  expect(await run.result).toMatchObject({ text: 'Done.' })
  wakes.splice(0)
  expect(await drive({ runId: run.id }, never)).toMatchObject({ status: 'done' })
  expect(wakes).toEqual([])
})

it('wakes a run that its worker hands back at once, and forgets one that was dropped', async () => {
  const { agent, open, wakes, engine } = office()
  const runtime = open()
  const runId = await runtime.enqueue(agent, 'Work.')
  const stop = new AbortController()
  stop.abort()
  const drive = createDrive({ runtime, engine })
  expect(await drive({ runId }, stop.signal)).toMatchObject({ status: 'handedBack' })
  expect(wakes).toEqual([{ runId }])
  const dropped = '01932f00-0000-7000-8000-000000000001' as RunId
  expect(await drive({ runId: dropped }, never)).toMatchObject({ status: 'done' })
})

it('carries the start of a run of a session as JSON, and refuses one that no worker could begin', async () => {
  const { agent, open, wakes, engine } = office()
  const client = createClient({ runtime: open(), engine })
  const enqueue = (input: string, options: object): Promise<RunId> =>
    client.enqueue(agent, input, { sessionId: 'chat', ...options })
  const model = scriptedModel([])
  await expect(enqueue('', {})).rejects.toThrow(/needs input/)
  await expect(enqueue('Hi.', { limits: { maxTurns: -1 } })).rejects.toThrow(/maxTurns/)
  await expect(enqueue('Hi.', { model })).rejects.toThrow(/model is not what a job/)
  await expect(enqueue('Hi.', { mayFollow: () => {} })).rejects.toThrow(/mayFollow is not what a job/)
  await expect(enqueue('Hi.', { whenBusy: 'wait' })).rejects.toThrow(ConfigurationError)
  expect(wakes).toEqual([])
  const deadline = new Date(4_000_000_000_000)
  const runId = await enqueue('Hi.', { deadline, limits: { maxTurns: 3 }, subject: 'ada', context: open })
  expect(wakes).toHaveLength(1)
  const sent = JSON.parse(JSON.stringify(wakes[0])) as Wake
  expect(sent.start?.options).toEqual({
    deadline: 4e12,
    limits: { maxTurns: 3 },
    sessionId: 'chat',
    subject: 'ada',
  })
  const stop = new AbortController()
  stop.abort()
  const drive = createDrive({ runtime: open(), engine })
  expect(await drive(sent, stop.signal)).toMatchObject({ runId, status: 'handedBack' })
})

it('pauses before it drives a run again that has not moved, and sets the timer before it looks at the inbox', async () => {
  const { ledger, agent, open, wakes, engine } = office()
  const clock = manualClock()
  const runtime = open()
  const runId = await runtime.enqueue(agent, 'Work.')
  const { seq } = (await ledger.head(runId))!
  const resting = (rest: Omit<Rest, 'runId' | 'seq'>) =>
    createDrive({
      ...{ runtime: { ...runtime, drive: () => Promise.resolve({ ...rest, runId, seq }) }, engine, clock },
    })
  const begun = clock.now()
  await resting({ status: 'handedBack', wakeAt: begun, pending: false })({ runId }, never)
  expect(wakes.splice(0)).toEqual([{ runId, at: begun + 1_000 }])
  const later = begun + 60_000
  await ledger.put(runId, { key: 'a', command: { type: 'cancel' }, at: begun })
  await resting({ status: 'waiting', wakeAt: later, pending: false })({ runId }, never)
  expect(wakes).toEqual([{ runId, at: later }, { runId }])
})

it('wakes a schedule at its next time, and each run that it has started', async () => {
  const { agent, wakes, engine } = office()
  const clock = manualClock()
  const ledger = memoryLedger({ clock })
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock, report: () => {} } })
  const hour = 3_600_000
  const { scheduleId } = await runtime.schedule(agent, { every: hour, input: 'Work.', drive: false })
  const drive = createDrive({ runtime, engine })
  const begunAt = clock.now()
  expect(await drive({ runId: scheduleId }, never)).toMatchObject({ status: 'parked' })
  expect(wakes.splice(0)).toEqual([{ runId: scheduleId, at: begunAt + hour }])
  clock.advance(hour)
  const { started = [] } = await drive({ runId: scheduleId, tenant: 'acme' }, never)
  expect(started).toHaveLength(1)
  expect(wakes).toEqual([
    { runId: started[0], priority: undefined, tenant: 'acme' },
    { runId: scheduleId, tenant: 'acme', at: begunAt + 2 * hour },
  ])
  // Delivered once more, as engines may, also since the worker has died: nothing is started twice, and what was is woken again.
  wakes.splice(0)
  expect(await drive({ runId: scheduleId }, never)).toMatchObject({ started })
  expect(wakes[0]).toMatchObject({ runId: started[0] })
  const begun = await Array.fromAsync(ledger.find({ types: ['run_started'] }))
  expect(begun.map(({ runId }) => runId)).toEqual([scheduleId, ...started])
})
