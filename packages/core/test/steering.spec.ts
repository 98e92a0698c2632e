import { describe, expect, it } from 'vitest'
import { joinText, type RuntimeEvent } from '@tallystick/core'
import { testTool } from '@tallystick/testkit'
import { stage } from './stage.ts'

const settledInputs = (events: readonly RuntimeEvent[]) =>
  events.flatMap((event) => (event.type === 'input_settled' ? [{ ...event }] : []))

const shown = (messages: readonly { role: string; parts?: readonly { type: string; text?: string }[] }[]) =>
  messages.map(({ role, parts }) => (parts ? `${role}: ${joinText(parts)}` : role))

describe('input while a run is at work', () => {
  it('steers at the next injection, and input_settled says where', async () => {
    const {
      start,
      waitUntilSettled: settle,
      eventsOf,
      model,
    } = stage({
      steps: [{ text: 'Looking.', toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }],
      tools: [testTool({ name: 'look' })],
    })
    const run = start()
    run.events$.subscribe((event) => {
      if (event.type === 'tool_started') void run.steer('Be brief.')
    })
    expect(await settle(run.result)).toMatchObject({ reason: 'answered', turns: 2 })
    expect(shown(model.requests[1]!.messages)).toEqual([
      'user: Go.',
      'assistant: Looking.',
      'tool',
      'user: Be brief.',
    ])
    const [settledInput, ...others] = settledInputs(await eventsOf(run))
    expect(settledInput).toMatchObject({ delivered: true, turn: 1 })
    expect(others).toEqual([])
  })

  it('answers what steers too late for an injection after the answer', async () => {
    const sent = Promise.withResolvers<unknown>()
    const {
      start,
      waitUntilSettled: settle,
      model,
    } = stage({
      steps: [{ text: 'One.', until: sent.promise }, { text: 'Two.' }],
    })
    const run = start()
    run.events$.subscribe((event) => {
      if (event.type === 'assistant_started' && event.turn === 1) sent.resolve(run.steer('And?'))
    })
    expect(await settle(run.result)).toMatchObject({ text: 'Two.', turns: 2 })
    expect(shown(model.requests[1]!.messages)).toEqual(['user: Go.', 'assistant: One.', 'user: And?'])
  })

  it('queues one by one, each after the answer before it', async () => {
    const sent = Promise.withResolvers<unknown>()
    const {
      start,
      waitUntilSettled: settle,
      model,
    } = stage({
      steps: [{ text: 'One.', until: sent.promise }, { text: 'Two.' }, { text: 'Three.' }],
    })
    const run = start()
    run.events$.subscribe((event) => {
      if (event.type !== 'assistant_started' || event.turn > 1) return
      sent.resolve(Promise.all([run.queue('Second?'), run.queue('Third?')]))
    })
    expect(await settle(run.result)).toMatchObject({ text: 'Three.', turns: 3 })
    expect(shown(model.requests[1]!.messages).at(-1)).toBe('user: Second?')
    expect(shown(model.requests[2]!.messages).at(-1)).toBe('user: Third?')
  })

  it('records why input was not delivered', async () => {
    const sent = Promise.withResolvers<unknown>()
    const {
      start,
      waitUntilSettled: settle,
      eventsOf,
    } = stage({
      steps: [{ text: 'No.', stopReason: 'refused', until: sent.promise }],
    })
    const run = start()
    run.events$.subscribe((event) => {
      if (event.type === 'assistant_started') sent.resolve(run.queue('Please?'))
    })
    expect(await settle(run.result)).toMatchObject({ reason: 'refused' })
    expect(settledInputs(await eventsOf(run))).toMatchObject([
      { delivered: false, why: 'The run ended before it (refused).' },
    ])
  })
})

describe('rules of the agent', () => {
  it('stopWhen ends the run before another model call', async () => {
    const {
      start,
      waitUntilSettled: settle,
      model,
    } = stage({
      steps: [{ text: 'Looking.', toolCalls: [{ name: 'look', input: {} }] }],
      tools: [testTool({ name: 'look' })],
      stopWhen: (state) => state.totals.toolCalls >= 1,
    })
    expect(await settle(start().result)).toMatchObject({ reason: 'stopped', toolCalls: 1 })
    model.assertComplete()
  })

  it('prepareTurn changes what a turn shows, and the ledger says how', async () => {
    const {
      start,
      waitUntilSettled: settle,
      eventsOf,
      model,
    } = stage({
      steps: [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }],
      tools: [testTool({ name: 'look' }), testTool({ name: 'touch', effect: 'write' })],
      prepareTurn: ({ turn }) =>
        turn === 0
          ? { instructions: 'Look first.', tools: ['look'], toolChoice: { type: 'any' } }
          : undefined,
    })
    const run = start()
    await settle(run.result)
    expect(model.requests[0]).toMatchObject({ instructions: 'Look first.', toolChoice: { type: 'any' } })
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['look'])
    expect(model.requests[1]).toMatchObject({ instructions: 'Act.', toolChoice: { type: 'auto' } })
    expect(model.requests[1]?.tools.map(({ name }) => name)).toEqual(['look', 'touch'])
    const calls = (await eventsOf(run)).filter(({ type }) => type === 'model_call_started')
    expect(calls[0]).toMatchObject({ change: { instructions: 'Look first.', tools: ['look'] } })
    expect(calls[1]).not.toHaveProperty('change')
  })

  it('prepareTurn may show other messages, and a failed attempt is made again with the same', async () => {
    const messages = [{ role: 'user' as const, parts: [{ type: 'text' as const, text: 'Redacted.' }] }]
    const {
      start,
      waitUntilSettled: settle,
      model,
    } = stage({
      steps: [{ fail: 'overloaded' }, { text: 'Done.' }],
      prepareTurn: () => ({ messages }),
    })
    await settle(start().result)
    expect(model.requests.map((request) => shown(request.messages))).toEqual([
      ['user: Redacted.'],
      ['user: Redacted.'],
    ])
  })

  it('an approval policy asks or denies where the tool itself would run', async () => {
    const pay = testTool({ name: 'pay', effect: 'write' })
    const {
      start,
      waitUntilSettled: settle,
      eventsOf,
    } = stage({
      steps: [
        {
          toolCalls: [
            { name: 'pay', input: { usd: 5_000 } },
            { name: 'pay', input: { usd: 50 } },
            { name: 'pay', input: { usd: 5 } },
          ],
        },
        { text: 'Done.' },
      ],
      tools: [pay],
      approval: ({ input }) => {
        const usd = Number(input['usd'])
        return usd > 1_000 ? { deny: 'Too much.' } : usd > 10 ? { ask: 'More than 10 dollars.' } : 'run'
      },
    })
    const run = start()
    const rest = await settle(run.result)
    expect(rest.pendingApprovals).toMatchObject([{ input: { usd: 50 }, reason: 'More than 10 dollars.' }])
    await settle(run.deny(rest.pendingApprovals[0]!.toolCallId, { by: 'ada', reason: 'No.' }))
    await settle(run.result)
    const results = (await eventsOf(run)).filter((event) => event.type === 'tool_result')
    expect(results.map(({ outcome }) => outcome)).toEqual(['denied', 'denied', 'success'])
    expect(JSON.stringify(results[0])).toContain('Too much.')
    expect(pay.runs.map(({ input }) => input)).toEqual([{ usd: 5 }])
  })

  it('an approval that is not decided in time counts as denied', async () => {
    const {
      start,
      waitUntilSettled: settle,
      clock,
      runtime,
      eventsOf,
    } = stage({
      steps: [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Nobody came.' }],
      tools: [testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })],
      limits: { maxApprovalMs: 60_000 },
    })
    const run = start()
    const { pendingApprovals } = await settle(run.result)
    clock.advance(60_000)
    const acknowledgement = await settle(run.approve(pendingApprovals[0]!.toolCallId, { by: 'ada' }))
    expect(acknowledgement).toMatchObject({ accepted: false, code: 'approval_expired' })
    expect(await settle(runtime.resume(run.id).result)).toMatchObject({
      reason: 'answered',
      text: 'Nobody came.',
    })
    const decided = (await eventsOf(run)).find(({ type }) => type === 'approval_decided')
    expect(decided).toMatchObject({ approved: false, by: 'expiry' })
  })
})
