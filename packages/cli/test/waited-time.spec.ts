import { createRuntime, defineAgent, memoryLedger, type RunId } from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { foldTo } from '@tallystick/ledger'
import { expect, it } from 'vitest'
import { readWaitedTime } from '../src/runs/read-run.ts'

const hour = 3_600_000
const monday = Date.UTC(2026, 10, 23)

it('a fork waited since it was forked: neither what it shares counts, nor the time until then', async () => {
  const ledger = memoryLedger()
  const buy = testTool({ name: 'buy', effect: 'write', check: () => ({ kind: 'ask' }) })
  const asking = { toolCalls: [{ name: 'buy', input: {} }] }
  const steps = [asking, asking, { text: 'Bought.' }]
  const at = (time: number) => {
    const clock = manualClock(time)
    const model = scriptedModel(steps)
    const agent = defineAgent({ name: 'buyer', instructions: 'Buy.', model, tools: [buy] })
    return { clock, agent, runtime: createRuntime({ ledger, agents: [agent], host: { clock } }) }
  }
  const waitedBy = async (runId: RunId, seq?: number): Promise<number> =>
    readWaitedTime(ledger, await foldTo(ledger, runId, seq))

  const { clock, agent, runtime } = at(monday)
  const run = runtime.run(agent, 'Buy tea.')
  const first = await run.result
  clock.advance(hour)
  await run.approve(first.pendingApprovals[0]!.toolCallId, { by: 'ann' })
  await run.result
  expect(await waitedBy(run.id)).toBe(hour)

  const next = at(monday + 24 * hour)
  const fork = next.runtime.fork(run.id, { atSeq: first.seq })
  const forked = await fork.result
  expect(await waitedBy(fork.id)).toBe(0)
  expect(await waitedBy(fork.id, first.seq)).toBe(0)
  next.clock.advance(2 * hour)
  await fork.approve(forked.pendingApprovals[0]!.toolCallId, { by: 'ann' })
  await fork.result
  expect(await waitedBy(fork.id)).toBe(2 * hour)

  const late = at(monday + 48 * hour)
  const again = late.runtime.fork(run.id, { atSeq: 2 })
  await again.result
  expect(await waitedBy(again.id)).toBe(0)
})
