// What users of agent runtimes have run into with approvals, one level down: the call belongs to an agent that is a tool of
// another; see approval-runs-once.spec.ts.
import { expect, it } from 'vitest'
import { agentTool, createRuntime, defineAgent, type Ledger, type Runtime } from '@tallystick/core'
import {
  scriptedModel,
  seededRandom,
  testTool,
  type ScriptedModel,
  type ScriptedReply,
} from '@tallystick/testkit'
import { checkedRun, ofType, recorded, stage, type Stage } from './stage.ts'
import { effort } from '../../../scripts/testing/effort.ts'

/** Asks once, and answers when it has the result, in whichever process. */
const askingOnce = (call: ScriptedReply, answer: string): ScriptedModel =>
  scriptedModel(
    Array.from(
      { length: 9 },
      () =>
        ({ messages }) =>
          messages.length === 1 ? call : { text: answer },
    ),
  )

const asks = (name: string, input: { readonly [key: string]: string }): ScriptedReply => ({
  toolCalls: [{ name, input }],
})

let processes = 0

/** A process that knows a clerk, who is a tool of a boss and pays only when a person says so. `log` is the world outside. */
function office({ clock }: Stage, ledger: Ledger, log: string[]): { runtime: Runtime; start: () => string } {
  const pay = testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: 'ask' }),
    run: () => `payment ${log.push('paid')}`,
  })
  const clerk = defineAgent({
    ...{ name: 'clerk', description: 'Pays bills.', instructions: 'Pay.', tools: [pay] },
    model: askingOnce(asks('pay', {}), 'Paid.'),
  })
  const boss = defineAgent({
    ...{ name: 'boss', instructions: 'Delegate.', tools: [agentTool(clerk)] },
    model: askingOnce(asks('clerk', { task: 'Pay the bill.' }), 'The bill is paid.'),
  })
  const host = { clock, random: seededRandom(++processes), report: () => {} }
  const runtime = createRuntime({ ledger, agents: [boss], host })
  return { runtime, start: () => runtime.run(boss, 'Pay the bill.').id }
}

it('one approval of a call of a child run that two processes resume runs the tool once, however far the one is ahead', async () => {
  const outcomes = new Set<string>()
  for (let ahead = 0; ahead < 100; ahead += effort({ quick: 5, thorough: 1 })) {
    const log: string[] = []
    const set = stage()
    const first = office(set, set.ledger, log)
    const runId = first.start()
    const rest = await set.waitUntilSettled(first.runtime.resume(runId).result)
    const { toolCallId, runId: childId } = rest.pendingApprovals[0]!
    const one = office(set, set.ledger, log).runtime.resume(runId)
    const decisions: Promise<unknown>[] = [one.approve(toolCallId, { by: 'ada' })]
    for (let turn = 0; turn < ahead; turn++) await Promise.resolve()
    const two = office(set, set.ledger, log).runtime.resume(runId)
    decisions.push(two.approve(toolCallId, { by: 'bob' }))
    await set.waitUntilSettled(Promise.allSettled([...decisions, one.result, two.result]))
    // Each of them may have taken the run from the other and stopped; the process that resumes it brings it to its end.
    for (let again = 0; again < 3; again++) {
      await set.waitUntilSettled(
        Promise.allSettled([office(set, set.ledger, log).runtime.resume(runId).result]),
      )
    }
    expect({ ahead, log }).toEqual({ ahead, log: ['paid'] })
    const above = checkedRun(await recorded(set.ledger, runId))
    const below = checkedRun(await recorded(set.ledger, childId))
    expect(ofType(below, 'approval_decided')).toHaveLength(1)
    expect(ofType(below, 'tool_started')).toHaveLength(1)
    expect(ofType(above, 'tool_started')).toHaveLength(1)
    expect([above, below].map((events) => events.at(-1))).toMatchObject([
      { type: 'run_finished', reason: 'answered' },
      { type: 'run_finished', reason: 'answered' },
    ])
    for (const { outcome } of ofType(below, 'tool_result')) outcomes.add(outcome)
    expect(ofType(above, 'tool_result')).toMatchObject([{ outcome: 'success', child: { runId: childId } }])
  }
  expect(outcomes).toEqual(new Set(['success']))
})
