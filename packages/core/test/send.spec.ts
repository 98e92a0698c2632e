import { describe, expect, it } from 'vitest'
import { ConfigurationError, memoryLedger, RunNotFoundError } from '@tallystick/core'
import { seededRandom, testTool } from '@tallystick/testkit'
import { checkedRun, ofType, stage } from './stage.ts'

/** Two processes on one ledger: the first drives a run, whose tool runs until it is let end. */
function twoProcesses() {
  const ledger = memoryLedger()
  const end = Promise.withResolvers<string>()
  const tools = [testTool({ name: 'slow', run: () => end.promise })]
  const steps = [{ toolCalls: [{ name: 'slow', input: {} }] }, { text: 'Done.' }]
  const one = stage({ ledger, steps, tools })
  const other = stage({
    ledger,
    steps: [{ text: 'Done.' }],
    tools,
    clock: one.clock,
    random: seededRandom(2),
  })
  return { one, other, end: () => end.resolve('Slowly.') }
}

const message = { role: 'user', parts: [{ type: 'text', text: 'Hurry.' }] } as const

describe('a command that is sent to a run', () => {
  it('of another process is decided there, and takes nothing over', async () => {
    const { one, other, end } = twoProcesses()
    const run = one.start()
    while (ofType(await one.eventsOf(run), 'tool_started').length === 0) await Promise.resolve()
    const sent = other.runtime.send(run.id, { type: 'steer', message, receipt: 'r1' })
    expect(await one.waitUntilSettled(sent)).toEqual({ accepted: true })
    end()
    expect(await one.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered' })
    const events = checkedRun(await one.eventsOf(run))
    expect(ofType(events, 'run_resumed')).toEqual([])
    expect(ofType(events, 'input_settled')).toMatchObject([{ receipt: 'r1', delivered: true }])
  })

  it('that no process drives has this one take it over', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]
    const one = stage({ steps, tools: [pay] })
    const { runId, pendingApprovals } = await one.play()
    const other = stage({ ledger: one.ledger, steps: [{ text: 'Paid.' }], tools: [pay], clock: one.clock })
    const { toolCallId } = pendingApprovals[0]!
    const command = { type: 'approve', toolCallId, by: 'ada' } as const
    expect(await other.waitUntilSettled(other.runtime.send(runId, command))).toEqual({ accepted: true })
    await other.waitUntilSettled(other.runtime.idle())
    expect(ofType(checkedRun(await one.eventsOf(runId)), 'run_finished')).toMatchObject([
      { reason: 'answered' },
    ])
    expect(await other.waitUntilSettled(other.runtime.send(runId, command))).toMatchObject({
      accepted: false,
      code: 'not_awaiting_approval',
    })
  })

  it('twice under one key is one command', async () => {
    const { one, other, end } = twoProcesses()
    const run = one.start()
    while (ofType(await one.eventsOf(run), 'tool_started').length === 0) await Promise.resolve()
    const send = () => other.runtime.send(run.id, { type: 'queue', message, receipt: 'r1' }, { key: 'k1' })
    expect(await one.waitUntilSettled(send())).toEqual({ accepted: true })
    await expect(one.waitUntilSettled(send())).rejects.toMatchObject({
      code: 'ledger_conflict',
      kind: 'unique',
    })
    end()
    await one.waitUntilSettled(run.result)
    expect(ofType(await one.eventsOf(run), 'input_received')).toHaveLength(2)
  })

  it('that is incomplete, or to no run, is refused before anything is sent', async () => {
    const { runtime, play, eventsOf } = stage()
    const { runId, seq } = await play()
    const incomplete = { type: 'approve', toolCallId: 'x' } as unknown as Parameters<typeof runtime.send>[1]
    expect(await runtime.send(runId, incomplete)).toMatchObject({ accepted: false, code: 'malformed' })
    expect(await eventsOf(runId)).toHaveLength(seq)
    const cancel = { type: 'cancel' } as const
    await expect(runtime.send('x', cancel)).rejects.toThrow(RunNotFoundError)
    await expect(runtime.send('01a20ad2-04d4-72fd-99e7-7861fc19641d', cancel)).rejects.toThrow(
      RunNotFoundError,
    )
    const misspelt = { keys: 'k1' } as object
    await expect(runtime.send(runId, cancel, misspelt)).rejects.toThrow(ConfigurationError)
  })
})
