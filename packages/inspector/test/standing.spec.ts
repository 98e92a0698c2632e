import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { describeDemands } from '../src/page/ui/demands.ts'
import { describeCallFacts, listCalls } from '../src/page/worker/call.ts'
import { listStanding } from '../src/page/worker/standing.ts'
import { describeWaits } from '../src/page/worker/waits.ts'
import { readModel } from './support/read-model.ts'

const hourMs = 3_600_000

function openTill(approvers?: { readonly count?: number; readonly roles?: readonly string[] }) {
  const pay = testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: 'ask', reason: 'it is money', ...(approvers && { approvers: [approvers] }) }),
    run: () => 'Paid.',
  })
  const bill = { toolCalls: [{ name: 'pay', input: { usd: 5 } }] }
  const model = scriptedModel([bill, bill, { text: 'All paid.' }])
  const agent = defineAgent({ name: 'cashier', instructions: '', model, tools: [pay] })
  const again = { ...agent, model: scriptedModel([bill, { text: 'Paid again.' }]) }
  const ledger = memoryLedger()
  const open = (known = agent) => createRuntime({ ledger, agents: [known], host: { clock: manualClock() } })
  return { agent, again, ledger, open }
}

it('tells of an approval that stands which calls it let through, in later runs of the session too, and its end', async () => {
  const { agent, again, ledger, open } = openTill()
  const runtime = open()
  const first = runtime.run(agent, 'Pay.', { sessionId: 'march' })
  const [question] = (await first.result).pendingApprovals
  const standing = { for: 'equal_input', expiresInMs: hourMs } as const
  await first.approve(question!, { by: 'ann', roles: ['finance'], standing })
  await runtime.resume(first.id).result
  const model = await readModel(ledger, first.id)
  const [given, covered] = listCalls(model)
  const one = { id: given!.toolCallId, name: 'pay', by: 'ann', roles: ['finance'], scope: 'equal_input' }
  const applied = [{ toolCallId: covered!.toolCallId, seq: expect.any(Number) as number }]
  expect(listStanding(model.events)).toEqual([
    { ...one, applied, expiresAt: expect.any(Number), seq: expect.any(Number) },
  ])
  for (const { toolCallId } of listCalls(model))
    expect(describeCallFacts(model, toolCallId)?.standing).toMatchObject([one])

  const later = open(again).run(again, 'Pay.', { sessionId: 'march' })
  await later.result
  const [carried] = listStanding((await readModel(ledger, later.id)).events)
  expect(carried).toMatchObject({ ...one, isCarried: true, seq: 1, applied: [{}] })

  await runtime.session('march').withdraw(given!.toolCallId, { by: 'ben', reason: 'Enough.' })
  for await (const { runId } of ledger.runs({ sessionId: 'march', limit: 1 }))
    expect(listStanding((await readModel(ledger, runId)).events)).toMatchObject([
      { id: given!.toolCallId, withdrawn: { by: 'ben', reason: 'Enough.' } },
    ])

  const fork = runtime.fork(first.id, {
    atSeq: model.events.findLast(({ type }) => type === 'tool_result')!.seq,
  })
  await fork.result
  expect(listStanding((await readModel(ledger, fork.id)).events)).toEqual([])
})

it('says how many of those who have to approve have, and who', async () => {
  const { agent, ledger, open } = openTill({ count: 2, roles: ['finance'] })
  const run = open().run(agent, 'Pay.', { owner: 'olga' })
  const [question] = (await run.result).pendingApprovals
  await run.approve(question!, { by: 'ann', roles: ['finance'] })
  const { state } = await readModel(ledger, run.id)
  const [{ approvers, approvals }] = describeWaits(state!).approvals as [
    ReturnType<typeof describeWaits>['approvals'][number],
  ]
  expect(describeDemands(approvers, approvals)).toEqual(['1 of 2 with the role finance approved so far: ann'])
  expect(describeDemands([{}], [])).toEqual(['0 of 1 approved so far'])
})
