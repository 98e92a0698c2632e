import { describe, expect, it } from 'vitest'
import { createRuntime, defineAgent, memoryLedger, type RunState, type RuntimeEvent } from '@tallystick/core'
import { evolve, recoverMessage } from '@tallystick/core/machine'
import { type RefusalPolicy } from '@tallystick/core/vocabulary'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedStep,
} from '@tallystick/testkit'
import { replayRun } from '@tallystick/replay'

const usage = { inputTokens: 100, outputTokens: 10 }
const refused: ScriptedStep = { text: 'Well, ', reasoning: 'Hm.', stopReason: 'refused', usage }
const advised: ScriptedStep = {
  ...refused,
  refusal: { reason: 'cyber: It could do harm.', leaveOut: true, askAnother: true },
}

/** Plays a model that refuses, and a fallback that answers; returns the events of the run. */
async function passedOn(step: ScriptedStep, onRefusal?: RefusalPolicy): Promise<readonly RuntimeEvent[]> {
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const agent = defineAgent({
    ...{ name: 'helper', instructions: 'Help.', tools: [testTool({ name: 'look' })] },
    ...{ model: scriptedModel([step]), fallbacks: [scriptedModel([{ text: 'Here.', usage }], 'other-1')] },
    ...(onRefusal && { onRefusal }),
  })
  const run = createRuntime({ ledger, agents: [agent], host: { clock } }).run(agent, 'Go.')
  expect(await waitUntilSettled(clock, run.result)).toMatchObject({ reason: 'answered', text: 'Here.' })
  const events = await Array.fromAsync(ledger.read(run.id))
  expect(await replayRun(ledger, run.id, () => agent)).toEqual({ runId: run.id, events: events.length })
  return events
}

/** What the machine heard at the failure of the first attempt, as the record says it. */
function heardAtFailure(events: readonly RuntimeEvent[]): ReturnType<typeof recoverMessage> {
  const index = events.findIndex(({ type }) => type === 'model_stream_failed')
  const before = events.slice(0, index).reduce<RunState | undefined>(evolve, undefined)
  return recoverMessage(before, { recorded: events, index })
}

describe('a refusal that is passed on to a fallback', () => {
  it('is heard again as the finish that it was, with what the vendor said and what was streamed', async () => {
    const { refusal } = advised as { readonly refusal: object }
    expect(heardAtFailure(await passedOn(advised))).toEqual({
      ...{ type: 'model_finished', turn: 1, attempt: 1, stopReason: 'refused', refusal },
      parts: [
        { type: 'reasoning', text: 'Hm.', part: 0 },
        { type: 'text', text: 'Well, ', part: 1 },
      ],
    })
  })

  it('is heard as a finish where the vendor said nothing of it, and the agent wanted the fallback', async () => {
    const received = heardAtFailure(await passedOn(refused, { fallback: true }))
    expect(received).toMatchObject({ type: 'model_finished', stopReason: 'refused', refusal: {} })
  })

  it('is heard with the calls that the reply asked for', async () => {
    const events = await passedOn({ ...advised, toolCalls: [{ id: 'c', name: 'look', input: {} }] })
    expect(heardAtFailure(events)).toMatchObject({
      parts: [{ part: 0 }, { part: 1 }, { type: 'tool_call', providerCallId: 'c', name: 'look', part: 2 }],
    })
  })

  it('replays as a failure where it was recorded without its refusal, by an earlier release', async () => {
    const earlier = (await passedOn(advised)).map((event) => {
      if (event.type !== 'model_stream_failed') return event
      const { refusal: _refusal, ...rest } = event
      return rest
    })
    expect(heardAtFailure(earlier)).toMatchObject({ type: 'model_failed', failure: { class: 'refused' } })
  })

  it('differs from a failed call, which records no refusal', async () => {
    const failed = await passedOn({ text: 'Hm.', fail: 'authentication' })
    const [failure] = failed.filter(({ type }) => type === 'model_stream_failed')
    expect(failure).not.toHaveProperty('refusal')
    expect(heardAtFailure(failed)).toMatchObject({ type: 'model_failed' })
  })
})
