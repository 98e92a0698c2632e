import { defineGuardrail, joinText, type Guardrail, type RunState } from '@tallystick/core'
import { readMessages } from '@tallystick/core/internal'
import { evolve } from '@tallystick/core/machine'
import { testTool, scriptedModel } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { checkedRun, ofType, stage, typesOf } from './stage.ts'

const noSecrets = defineGuardrail({
  name: 'no-secrets',
  on: 'input',
  check: ({ text }) =>
    text.includes('sk-') ? { replace: text.replaceAll(/sk-\w+/g, '…'), why: 'a key' } : 'pass',
})
const noSwearing = defineGuardrail({
  name: 'no-swearing',
  on: 'input',
  check: ({ text }) => (text.includes('damn') ? { block: 'swearing' } : 'pass'),
})

describe('a guardrail on the input', () => {
  it('blocks before any model is called', async () => {
    const { play, model, eventsOf } = stage({ guardrails: [noSwearing] })
    const result = await play('damn')
    expect(result).toMatchObject({ reason: 'guardrail', detail: 'no-swearing: swearing', turns: 0 })
    expect(model.requests).toEqual([])
    const events = checkedRun(await eventsOf(result.runId))
    expect(typesOf(events)).toEqual([
      ...['run_started', 'input_received', 'guardrail_tripped', 'guardrails_checked', 'run_finished'],
    ])
  })

  it('replaces what the model is shown, and the ledger keeps both', async () => {
    const { play, model, eventsOf } = stage({ guardrails: [noSwearing, noSecrets] })
    const { runId, reason } = await play('My key is sk-123.')
    expect(reason).toBe('answered')
    expect(
      joinText(model.requests[0]?.messages[0]?.role === 'user' ? model.requests[0].messages[0].parts : []),
    ).toBe('My key is ….')
    const events = checkedRun(await eventsOf(runId))
    expect(ofType(events, 'guardrail_tripped')).toMatchObject([
      { guardrail: 'no-secrets', on: 'input', action: 'replace', detail: 'a key', index: 0 },
    ])
    expect(ofType(events, 'guardrails_checked')[0]?.guardrails).toEqual(['no-swearing', 'no-secrets'])
  })

  it('records and lets the run continue', async () => {
    const counted = defineGuardrail({
      name: 'counted',
      on: 'input',
      check: ({ text }) => ({ record: `${text.length}` }),
    })
    const { play, eventsOf } = stage({ guardrails: [counted] })
    const { runId, reason } = await play('12345')
    expect(reason).toBe('answered')
    expect(ofType(await eventsOf(runId), 'guardrail_tripped')).toMatchObject([
      { action: 'record', detail: '5' },
    ])
  })

  it('looks at what steers and what is queued as well', async () => {
    let say: (() => void) | undefined
    const until = new Promise<void>((resolve) => {
      say = resolve
    })
    const {
      start,
      waitUntilSettled: settle,
      eventsOf,
    } = stage({
      steps: [{ text: 'First.', until }, { text: 'Second.' }],
      guardrails: [noSwearing],
    })
    const run = start('Hello.')
    await settle(run.queue('damn'))
    say?.()
    expect(await settle(run.result)).toMatchObject({ reason: 'guardrail', text: 'First.', turns: 1 })
    checkedRun(await eventsOf(run))
  })

  it('that throws, or does not answer in time, blocks: it could not look', async () => {
    const broken = defineGuardrail({
      name: 'broken',
      on: 'input',
      check: () => {
        throw new Error('no connection')
      },
    })
    const slow = defineGuardrail({
      name: 'slow',
      on: 'input',
      timeoutMs: 50,
      check: () => new Promise(() => {}),
    })
    const failing = stage({ guardrails: [broken] })
    expect(await failing.play()).toMatchObject({
      reason: 'guardrail',
      detail: 'broken: it failed: no connection',
    })
    // The operator gets the exception, with its stack.
    expect(failing.reported.map(String)).toEqual(['Error: no connection'])
    expect(await stage({ guardrails: [slow] }).play()).toMatchObject({
      detail: 'slow: it did not answer in time',
    })
  })
})

describe('a guardrail beside the model call', () => {
  const beside = (answer: Promise<'pass' | { block: string }>): Guardrail => ({
    ...{ name: 'beside', on: 'input', beside: true, check: () => answer },
  })

  it('gives the call up when it blocks, and what had come is kept', async () => {
    let trip: ((verdict: { block: string }) => void) | undefined
    const verdict = new Promise<{ block: string }>((resolve) => {
      trip = resolve
    })
    const {
      start,
      waitUntilSettled: settle,
      model,
      eventsOf,
    } = stage({
      steps: [{ text: 'I will tell you', hang: true }],
      guardrails: [beside(verdict)],
    })
    const run = start()
    run.textUpdates$.subscribe(() => trip?.({ block: 'not this' }))
    expect(await settle(run.result)).toMatchObject({ reason: 'guardrail', detail: 'beside: not this' })
    expect(model.abandoned).toBe(1)
    const events = checkedRun(await eventsOf(run))
    expect(ofType(events, 'assistant_message_finished')).toMatchObject([
      { partial: true, stopReason: 'cancelled' },
    ])
  })

  it('holds tools back until it has passed, and calls that were asked for get results when it does not', async () => {
    const tool = testTool({ name: 'look' })
    let pass: ((verdict: 'pass') => void) | undefined
    const verdict = new Promise<'pass'>((resolve) => {
      pass = resolve
    })
    const toolReply = { toolCalls: [{ name: 'look', input: {} }] }
    const waiting = stage({
      steps: [toolReply, { text: 'Done.' }],
      tools: [tool],
      guardrails: [beside(verdict)],
    })
    const run = waiting.start()
    run.events$.subscribe(({ type }) => {
      if (type !== 'assistant_message_finished') return
      expect(tool.runs).toHaveLength(0)
      pass?.('pass')
    })
    expect(await waiting.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered' })
    const types = typesOf(checkedRun(await waiting.eventsOf(run)))
    expect(types.indexOf('guardrails_checked')).toBeLessThan(types.indexOf('tool_requests_collected'))

    const blocked = stage({
      ...{ steps: [toolReply], tools: [tool] },
      guardrails: [beside(Promise.resolve().then(() => ({ block: 'no' })))],
    })
    const result = await blocked.play()
    expect(result).toMatchObject({ reason: 'guardrail' })
    expect(tool.runs).toHaveLength(1)
    checkedRun(await blocked.eventsOf(result.runId))
  })
})

describe('a guardrail on the output', () => {
  it('blocks, replaces, or records the answer', async () => {
    const output = (
      verdict: Awaited<ReturnType<Extract<Guardrail, { on: 'output' }>['check']>>,
    ): Guardrail => ({
      ...{ name: 'tone', on: 'output', check: () => verdict },
    })
    const blocked = await stage({ guardrails: [output({ block: 'rude' })] }).play()
    expect(blocked).toMatchObject({ reason: 'guardrail', detail: 'tone: rude' })
    expect(blocked.text).toBe('The guardrail tone withheld this.')
    const replaced = await stage({ guardrails: [output({ replace: 'Kindly: done.' })] }).play()
    expect(replaced).toMatchObject({ reason: 'answered', text: 'Kindly: done.' })
    const noted = await stage({ guardrails: [output({ record: 'short' })] }).play()
    expect(noted).toMatchObject({ reason: 'answered', text: 'Done.' })
  })
})

describe('guardrails around tools', () => {
  const steps = [{ toolCalls: [{ name: 'pay', input: { amount: 900 } }] }, { text: 'Done.' }]

  it('block a call, which the model reads', async () => {
    const pay = testTool({ name: 'pay', effect: 'write' })
    const cap = defineGuardrail({
      name: 'cap',
      on: 'tool_input',
      check: ({ input }) => (Number(input['amount']) > 500 ? { block: 'more than 500' } : 'pass'),
    })
    const { play, eventsOf } = stage({ steps, tools: [pay], guardrails: [cap] })
    const { runId } = await play()
    expect(pay.runs).toHaveLength(0)
    const [result] = ofType(checkedRun(await eventsOf(runId)), 'tool_result')
    expect(result).toMatchObject({
      outcome: 'denied',
      content: [{ text: 'The guardrail cap stopped this call: more than 500. Nothing was run.' }],
    })
  })

  it('change what a tool is called with, before a person is asked about it', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const cap = defineGuardrail({
      name: 'cap',
      on: 'tool_input',
      check: ({ input }) => ({ replace: { ...input, amount: 500 } }),
    })
    const { start, waitUntilSettled: settle, eventsOf } = stage({ steps, tools: [pay], guardrails: [cap] })
    const run = start()
    const [pending] = (await settle(run.result)).pendingApprovals
    expect(pending?.input).toEqual({ amount: 500 })
    await settle(run.approve(pending!.toolCallId, { by: 'ada' }))
    await settle(run.result)
    expect(pay.runs.map(({ input }) => input)).toEqual([{ amount: 500 }])
    checkedRun(await eventsOf(run))
  })

  it('change or withhold what a tool answered, and the ledger keeps what it said', async () => {
    const pay = testTool({ name: 'pay', run: () => 'paid with card 4111' })
    const redact = defineGuardrail({
      name: 'redact',
      on: 'tool_output',
      check: ({ text }) => ({ replace: text.replaceAll(/\d+/g, '****') }),
    })
    const { play, eventsOf, model } = stage({ steps, tools: [pay], guardrails: [redact] })
    const { runId } = await play()
    const shown = JSON.stringify(model.requests[1]?.messages)
    expect(shown).toContain('paid with card ****')
    expect(shown).not.toContain('card 4111')
    expect(JSON.stringify(ofType(checkedRun(await eventsOf(runId)), 'tool_result'))).toContain('4111')
    const withheld = defineGuardrail({ name: 'hide', on: 'tool_output', check: () => ({ block: 'private' }) })
    const hidden = stage({ steps, tools: [pay], guardrails: [withheld] })
    await hidden.play()
    expect(JSON.stringify(hidden.model.requests[1]?.messages)).toContain('The guardrail hide withheld this.')
  })
})

it('a guardrail that looks while a model sums up looks again at the places that messages have then', async () => {
  const usage = { inputTokens: 900, outputTokens: 1 }
  const [summing, looking] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let looks = 0
  const set = stage({
    steps: [
      ...Array.from({ length: 3 }, () => ({ toolCalls: [{ name: 'look', input: {} }], usage })),
      { text: 'Done.', usage },
      { text: 'Done.', usage },
    ],
    tools: [testTool({ name: 'look' })],
    compaction: {
      ...{ maxContextTokens: 600, keepMessages: 1 },
      summarize: scriptedModel(
        Array.from({ length: 9 }, () => ({ text: 'They looked.', until: summing.promise })),
        'sums-up',
      ),
    },
    guardrails: [
      defineGuardrail({
        name: 'cards',
        on: 'input',
        beside: true,
        check: async ({ text }) => {
          if (!text.includes('4111')) return 'pass'
          // The first check ends when the summary is recorded.
          if (++looks === 1) await looking.promise
          return { replace: [{ type: 'text', text: 'Card ****.' }] }
        },
      }),
    ],
  })
  const run = set.start('Look around.')
  let isSaid = false
  run.events$.subscribe(({ type }) => {
    if (type === 'compaction_started' && !isSaid) {
      isSaid = true
      void run.steer('Card 4111.')
    }
    if (type === 'input_settled') summing.resolve()
    if (type === 'context_compacted') looking.resolve()
  })
  const { reason } = await set.waitUntilSettled(run.result)
  const events = checkedRun(await set.eventsOf(run))
  const [compacted] = ofType(events, 'context_compacted')
  const [settled] = ofType(events, 'input_settled')
  const [tripped] = ofType(events, 'guardrail_tripped')
  // The input came into the history while the summary was written.
  expect(settled?.seq).toBeLessThan(compacted?.seq ?? 0)
  expect(tripped?.seq).toBeGreaterThan(compacted?.seq ?? Infinity)
  expect([reason, looks]).toEqual(['answered', 2])
  const then = events.slice(0, tripped?.seq).reduce<RunState | undefined>(evolve, undefined)
  const seen = readMessages(then!.history)[tripped?.index ?? -1]
  expect(seen).toEqual({ role: 'user', parts: [{ type: 'text', text: 'Card ****.' }] })
  expect(JSON.stringify(readMessages(then!.history))).not.toContain('Card 4111')
})
