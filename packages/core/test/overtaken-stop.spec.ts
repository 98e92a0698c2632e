import { createRuntime, defineAgent, memoryLedger, type Agent, type Ledger } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { lastValueFrom } from 'rxjs'
import { expect, it } from 'vitest'

function payer(): Agent {
  return defineAgent({
    name: 'payer',
    instructions: 'Pay.',
    model: scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]),
    tools: [testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }), run: () => 'paid' })],
  })
}

it('a resume that finds the inbox empty, since another writer consumed it, is a conflict, and no suspended run', async () => {
  const agent = payer()
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
        const other = createRuntime({ ledger, agents: [agent] })
        endings.push((await other.resume(runId, { takeOver: true }).result).reason)
      }
      return await ledger.inbox(asked)
    },
  }
  const stale = createRuntime({ ledger: slow, agents: [agent] }).resume(runId).result
  await expect(stale).rejects.toMatchObject({ code: 'ledger_conflict', kind: 'epoch' })
  expect(endings).toEqual(['resumes', 'answered'])
})

it('a reader of a run that stops sees what another process records before this one listens to it', async () => {
  const agent = payer()
  const ledger = memoryLedger()
  const other = createRuntime({ ledger, agents: [agent] })
  let asked = 0
  // The look with which the first process makes sure that it stops at the last event.
  const overtaken: Ledger = {
    ...ledger,
    head: async (runId) => {
      const head = await ledger.head(runId)
      if (asked++ === 0) {
        const run = other.resume(runId, { takeOver: true })
        const { pendingApprovals } = await run.result
        await run.approve(pendingApprovals[0]?.toolCallId ?? '', { by: 'ada' })
        await run.result
      }
      return head
    },
  }
  const run = createRuntime({ ledger: overtaken, agents: [agent] }).run(agent, 'Pay.')
  const seen = await lastValueFrom(run.events$)
  expect(seen).toMatchObject({ type: 'run_finished', reason: 'answered' })
  expect(asked).toBe(1)
})
