import { createRuntime, defineAgent, memoryLedger, type Ledger } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/core/testing'
import { expect, it } from 'vitest'

const agent = defineAgent({
  name: 'payer',
  instructions: 'Pay.',
  model: scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]),
  tools: [testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }), run: () => 'paid' })],
})

it('a resume that finds the inbox empty, since another writer consumed it, is a conflict, and no suspended run', async () => {
  const ledger = memoryLedger()
  const { runId, pendingApprovals } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Pay.')
    .result
  const [{ toolCallId }] = pendingApprovals as [(typeof pendingApprovals)[number]]
  await ledger.put(runId, { key: 'k', at: 0, command: { type: 'approve', toolCallId, by: 'ada' } })
  // The slow process has read the events; before it reads the inbox, the other one resumes the run and ends it.
  const endings: unknown[] = []
  const slow: Ledger = {
    ...ledger,
    inbox: async (asked) => {
      if (endings.length === 0) {
        endings.push('resumes')
        endings.push((await createRuntime({ ledger, agents: [agent] }).resume(runId).result).reason)
      }
      return await ledger.inbox(asked)
    },
  }
  const stale = createRuntime({ ledger: slow, agents: [agent] }).resume(runId).result
  await expect(stale).rejects.toMatchObject({ code: 'ledger_conflict', kind: 'epoch' })
  expect(endings).toEqual(['resumes', 'answered'])
})
