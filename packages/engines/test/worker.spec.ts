import { expect, it } from 'vitest'
import { createRuntime, defineAgent, memoryLedger, type RunId } from '@tallystick/core'
import { createDrive, type Wake } from '@tallystick/engines'
import { scriptedModel, testTool } from '@tallystick/testkit'

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
  expect(wakes.map(({ at }) => at ?? 0).every((at) => at <= Date.parse('9999-01-01'))).toBe(true)
  expect(wakes.at(-1)).toEqual({ runId })
  const dropped = '01932f00-0000-7000-8000-000000000001' as RunId
  expect(await drive({ runId: dropped }, never)).toMatchObject({ status: 'done' })
})
