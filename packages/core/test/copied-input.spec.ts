import { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Model } from '@tallystick/core'
import type { Json, JsonObject, ModelSignal, ToolSignal } from '@tallystick/core/vocabulary'
import { testTool } from '@tallystick/testkit'
import { toUserMessage } from '../src/runtime/start-run.ts'
import { ofType, stage } from './stage.ts'

const text = (said: string): { type: 'text'; text: string }[] => [{ type: 'text', text: said }]

describe('what is handed over is copied once: what its giver does with it afterwards changes no record', () => {
  it('input, at the start and while the run is at work', async () => {
    const pay = testTool({ name: 'pay', check: () => ({ kind: 'ask' }) })
    const set = stage({
      steps: [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }],
      tools: [pay],
    })
    const parts = text('Pay 1 euro.')
    const run = set.runtime.run(set.agent, parts)
    parts[0]!.text = 'Pay 1000 euros.'
    const more = text('And hurry.')
    const steered = run.steer(more)
    more.push(...text('Or else!'))
    await set.waitUntilSettled(steered)
    const inputs = ofType(await set.eventsOf(run), 'input_received').map(({ message }) => message.parts)
    expect(inputs).toEqual([text('Pay 1 euro.'), text('And hurry.')])
    const rest = await set.waitUntilSettled(run.result)
    const input: Record<string, Json> = { euros: 1 }
    const approved = run.approve(rest.pendingApprovals[0]!.toolCallId, { by: 'ada', input })
    input['euros'] = 1_000
    await set.waitUntilSettled(approved)
    await set.waitUntilSettled(run.result)
    expect(pay.runs.map((started) => started.input)).toEqual([{ euros: 1 }])
  })

  it('input, in the moment in which it is given', () => {
    const parts = text('Pay 1 euro.')
    const message = toUserMessage(parts)
    parts[0]!.text = 'Pay 1000 euros.'
    expect(message).toEqual({ role: 'user', parts: text('Pay 1 euro.') })
    expect(Object.isFrozen(message.parts)).toBe(true)
  })

  it('a conversation whose fields answer something else each time that they are read: what was checked is what is recorded', async () => {
    const set = stage()
    let reads = 0
    const changing = {
      get role() {
        return reads++ === 0 ? ('user' as const) : ('system' as never)
      },
      parts: text('Pay.'),
    }
    const run = (async () => await set.runtime.run(set.agent, [changing]).result)()
    await expect(set.waitUntilSettled(run)).rejects.toThrow(/cannot be shown to a model|reading/)
    let looks = 0
    const part = {
      type: 'text' as const,
      get text() {
        return looks++ % 2 === 0 ? 'Pay 1 euro.' : 'Pay 1000 euros.'
      },
    }
    const started = set.runtime.run(set.agent, [part])
    await set.waitUntilSettled(started.result)
    const [input] = ofType(await set.eventsOf(started), 'input_received')
    expect(set.model.requests.at(-1)?.messages[0]).toEqual(input?.message)
  })

  it('results of tools and of calls that are settled later', async () => {
    const content = text('done')
    const read = {
      ...testTool({ name: 'read' }),
      run: () =>
        new Observable<ToolSignal>((subscriber) => {
          subscriber.next({ type: 'tool_ended', outcome: 'success', content })
          content[0]!.text = 'forged'
        }),
    }
    const later = testTool({
      name: 'later',
      run: (_run, report) => {
        report.defer('job')
        return ''
      },
    })
    const call = (name: string): { name: string; input: JsonObject } => ({ name, input: {} })
    const set = stage({
      steps: [{ toolCalls: [call('read'), call('later')] }, { text: 'So.' }],
      tools: [read, later],
    })
    const run = set.start()
    const rest = await set.waitUntilSettled(run.result)
    const settled = text('settled')
    const acknowledgement = set.runtime.settle(run.id, rest.deferredCalls[0]!.toolCallId, settled)
    settled[0]!.text = 'forged'
    await set.waitUntilSettled(acknowledgement)
    await set.waitUntilSettled(run.result)
    const results = ofType(await set.eventsOf(run), 'tool_result').map((result) => result.content)
    expect(results).toEqual([text('done'), text('settled')])
  })

  it('replies of models, and the edits of a fork', async () => {
    const parts = [{ type: 'text' as const, text: 'Yes.', part: 0 }]
    const reporting: Model = {
      ...{ provider: 'own', api: 'wire', modelId: 'own-1' },
      stream: () =>
        new Observable<ModelSignal>((subscriber) => {
          subscriber.next({ type: 'model_finished', stopReason: 'end', parts })
          parts[0]!.text = 'No.'
        }),
    }
    const set = stage({ model: reporting })
    const run = set.start()
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ text: 'Yes.' })
    const said = text('Shall I?')
    const fork = set.runtime.fork(run.id, { atSeq: 2, edit: { input: said } })
    said[0]!.text = 'Never.'
    await set.waitUntilSettled(fork.result)
    expect(JSON.stringify(await set.eventsOf(fork.id))).toContain('Shall I?')
  })
})

describe('a turn that prepareTurn changes', () => {
  it('is refused a model that the agent does not have: a record of it would name a model that was never called', async () => {
    const model = { provider: 'other', api: 'wire', modelId: 'dearest-1' }
    const steps = [{ toolCalls: [{ name: 'look', input: {} }] }]
    const tools = [testTool({ name: 'look' })]
    const set = stage({ steps, tools, prepareTurn: ({ turn }) => (turn === 1 ? { model } : {}) })
    const run = set.start()
    await expect(set.waitUntilSettled(run.result)).rejects.toThrow(
      'names the model other wire dearest-1, which the agent does not have',
    )
    expect(set.model.requests).toHaveLength(1)
    const fixed = stage({ ledger: set.ledger, clock: set.clock, tools })
    expect(await fixed.waitUntilSettled(fixed.runtime.resume(run.id).result)).toMatchObject({ text: 'Done.' })
  })
})
