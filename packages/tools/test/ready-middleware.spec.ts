import { createRuntime, defineAgent, memoryLedger, type Tool } from '@tallystick/core'
import { manualClock, scriptedModel, waitUntilSettled } from '@tallystick/testkit'
import type { JsonObject } from '@tallystick/core/vocabulary'
import {
  audit,
  cache,
  defineTool,
  image,
  rateLimit,
  redact,
  settledLater,
  text,
  ToolError,
  wrapTools,
  type AuditEntry,
  type ToolContext,
  type ToolMiddleware,
} from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { callContext, endingOf, signalsOf } from './one-call.ts'

const tool = (
  execute: (input: { n: number }, context: ToolContext) => unknown = ({ n }) => `got ${n}`,
  more: object = {},
): Tool =>
  defineTool({
    name: 'get',
    description: 'Gets.',
    input: z.object({ n: z.number().default(1) }),
    effect: 'read',
    execute,
    ...more,
  })

const wrap = (inner: Tool, ...middleware: readonly ToolMiddleware[]): Tool =>
  wrapTools([inner], middleware)[0]!

describe('the middleware that comes along', () => {
  it('audit reports each start and ending, and keeps a call from running that it cannot report', async () => {
    const entries: AuditEntry[] = []
    await endingOf(
      wrap(
        tool(),
        audit((entry) => entries.push(entry)),
      ),
      {},
    )
    const { runId, toolCallId } = callContext
    const of = { tool: 'get', runId, toolCallId, attempt: 1, idempotencyKey: 'key-1' }
    expect(entries).toEqual([
      { ...of, phase: 'started' },
      { ...of, phase: 'ended', outcome: 'success' },
    ])
    let ran = 0
    const broken = audit(async () => {
      throw new Error('the log is full')
    })
    expect(
      (
        await endingOf(
          wrap(
            tool(() => ++ran),
            broken,
          ),
          {},
        )
      ).outcome,
    ).toBe('failed')
    expect(ran).toBe(0)
  })

  it('cache serves equal reads of one run for a time, and neither failures nor writes', async () => {
    let [ran, time] = [0, 0]
    const cached = wrap(
      tool(() => ++ran),
      cache({ maxAgeMs: 10, now: () => time }),
    )
    const ask = async (input: JsonObject, more: object = {}): Promise<string> =>
      (await endingOf(cached, input, more)).text
    expect([await ask({ n: 1 }), await ask({ n: 1 }), await ask({ n: 2 })]).toEqual(['1', '1', '2'])
    expect(await ask({ n: 1 }, { runId: 'another' })).toBe('3')
    time = 10
    expect(await ask({ n: 1 })).toBe('4')
    const shared = cache()
    const write = wrap(
      tool(() => ++ran, { effect: 'write' }),
      shared,
    )
    expect([(await endingOf(write, {})).text, (await endingOf(write, {})).text]).toEqual(['5', '6'])
    const fails = wrap(
      tool(() => {
        ran++
        throw new Error('no')
      }),
      shared,
    )
    await endingOf(fails, {})
    await endingOf(fails, {})
    expect(ran).toBe(8)
  })

  it('cache keeps as many results as it may', async () => {
    let ran = 0
    const cached = wrap(
      tool(() => ++ran),
      cache({ maxEntries: 2, scope: () => 'all' }),
    )
    for (const n of [1, 2, 1, 3, 3, 1]) await endingOf(cached, { n })
    expect(ran).toBe(4)
  })

  it('cache keeps results of each tool apart, and no call that is settled later', async () => {
    let ran = 0
    const shared = cache()
    const [one, other] = ['one', 'other'].map((name) =>
      wrap(
        tool(() => ++ran, { name }),
        shared,
      ),
    )
    const texts = [await endingOf(one!, {}), await endingOf(other!, {}), await endingOf(one!, {})]
    expect(texts.map(({ text: said }) => said)).toEqual(['1', '2', '1'])
    const later = wrap(
      tool(() => settledLater({ externalId: `job-${++ran}` }), { name: 'later' }),
      shared,
    )
    await signalsOf(later, {})
    expect(await signalsOf(later, {})).toEqual([{ type: 'tool_deferred', externalId: 'job-4' }])
  })

  it('cache keeps a result for a minute, and what was asked for anew longer than what was not', async () => {
    let [ran, time] = [0, 0]
    const cached = wrap(
      tool(() => ++ran),
      cache({ maxEntries: 2, now: () => time }),
    )
    const ask = async (n: number): Promise<string> => (await endingOf(cached, { n })).text
    expect([await ask(1), await ask(2)]).toEqual(['1', '2'])
    time = 59_999
    expect(await ask(1)).toBe('1')
    time = 60_000
    expect([await ask(1), await ask(3), await ask(1)]).toEqual(['3', '4', '3'])
  })

  it('cache keeps a thousand results, unless it is given another number', async () => {
    let ran = 0
    const cached = wrap(
      tool(() => ++ran),
      cache(),
    )
    for (let n = 0; n < 1_000; n++) await endingOf(cached, { n })
    expect((await endingOf(cached, { n: 0 })).text).toBe('1')
    await endingOf(cached, { n: 1_000 })
    expect((await endingOf(cached, { n: 0 })).text).toBe('1002')
  })

  it('rateLimit refuses what is too much, and says when there is room', async () => {
    let [ran, time] = [0, 1_000]
    const limited = wrap(
      tool(() => ++ran),
      rateLimit({ maxCalls: 2, perMs: 100, now: () => time }),
    )
    await endingOf(limited, {})
    time += 30
    await endingOf(limited, {})
    expect(await signalsOf(limited, {})).toMatchObject([
      {
        ...{ type: 'tool_ended', outcome: 'failed', retryable: true, retryAfterMs: 70 },
        content: [
          { type: 'text', text: 'get is called too often: there is room again in 70 ms. Nothing was run.' },
        ],
      },
    ])
    expect(ran).toBe(2)
    time += 70
    expect((await endingOf(limited, {})).outcome).toBe('success')
    time += 29
    expect((await endingOf(limited, {})).outcome).toBe('failed')
    time += 1
    expect((await endingOf(limited, {})).outcome).toBe('success')
  })

  it('rateLimit counts each tool alone, or what is of one scope', async () => {
    const one = { maxCalls: 1, perMs: 100, now: () => 0 }
    const outcomes = async (scope?: () => string) => {
      const limit = rateLimit({ ...one, scope })
      const tools = [wrap(tool(), limit), wrap(tool(undefined, { name: 'other' }), limit)]
      return [(await endingOf(tools[0]!, {})).outcome, (await endingOf(tools[1]!, {})).outcome]
    }
    expect(await outcomes()).toEqual(['success', 'success'])
    expect(await outcomes(() => 'all')).toEqual(['success', 'failed'])
  })

  it('redact leaves what is not text as it is: other parts, numbers, and a call that is settled later', async () => {
    const hide = redact((said) => `<${said}>`)
    const picture = image({ data: 'AAAA', mediaType: 'image/png' })
    const showing = tool((_input, { progress }) => {
      progress({ a: null, b: [1, true] })
      return [text('a'), picture]
    })
    expect(await signalsOf(wrap(showing, hide), {})).toEqual([
      { type: 'tool_progressed', data: { '<a>': null, '<b>': [1, true] } },
      { type: 'tool_ended', outcome: 'success', content: [{ type: 'text', text: '<a>' }, { ...picture }] },
    ])
    const later = tool(() => settledLater({ externalId: 'job-1' }))
    expect(await signalsOf(wrap(later, hide), {})).toEqual([{ type: 'tool_deferred', externalId: 'job-1' }])
    const busy = tool(
      () => {
        throw new ToolError('Busy.', { retryAfterMs: 5 })
      },
      { retry: { maxAttempts: 2 } },
    )
    expect(await signalsOf(wrap(busy, hide), {})).toMatchObject([
      { outcome: 'failed', retryable: true, retryAfterMs: 5 },
    ])
  })

  it('rateLimit makes a runtime wait, where the tool has retries', async () => {
    const clock = manualClock()
    const ran: number[] = []
    const inner = tool(() => ran.push(clock.now()), { retry: { maxAttempts: 5 } })
    const tools = wrapTools([inner], [rateLimit({ maxCalls: 1, perMs: 1_000, now: () => clock.now() })])
    const toolCalls = [1, 2, 3].map((n) => ({ name: 'get', input: { n } }))
    const agent = defineAgent({
      name: 'a',
      instructions: '',
      model: scriptedModel([{ toolCalls }, { text: 'Done.' }]),
      tools,
    })
    const host = { clock, random: () => 0, report: () => {} }
    const run = createRuntime({ ledger: memoryLedger(), agents: [agent], host }).run(agent, 'Go.')
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ reason: 'answered', toolCalls: 3 })
    const [first = 0, ...later] = ran
    expect(later.map((at) => at - first)).toEqual([1_000, 2_000])
  })

  it('redact changes results, projections and progress before anything is recorded', async () => {
    const hide = redact((text) => text.replaceAll('4111', '****'))
    const telling = tool(
      (_input, { progress }) => {
        progress({ card: ['4111'], 4111: 1 })
        return { card: '4111' }
      },
      { toModel: ({ card }: { card: string }) => `the card ${card}` },
    )
    const signals = await signalsOf(wrap(telling, hide), {})
    expect(JSON.stringify(signals)).not.toContain('4111')
    expect(signals).toMatchObject([
      { data: { card: ['****'], '****': 1 } },
      { content: [{ text: '{"card":"****"}' }], projected: [{ text: 'the card ****' }] },
    ])
    const broken = redact(() => {
      throw new Error('oops')
    })
    expect(JSON.stringify(await signalsOf(wrap(telling, broken), {}))).not.toContain('4111')
  })

  it.each([
    [() => cache({ maxAge: 5 } as never), /cache: maxAge is not an option/],
    [() => cache({ maxAgeMs: -1 }), /cache: maxAgeMs is -1/],
    [() => cache({ maxEntries: 0 }), /cache: maxEntries is 0/],
    [() => cache({ maxEntries: 1.5 }), /cache: maxEntries is 1\.5/],
    [() => rateLimit({ maxCalls: 0, perMs: 5 }), /rateLimit: maxCalls is 0/],
    [() => rateLimit({ maxCalls: 1.5, perMs: 5 }), /rateLimit: maxCalls is 1\.5/],
    [() => rateLimit({ maxCalls: 1, perMs: 0.5 }), /rateLimit: perMs is 0\.5/],
    [() => redact('x' as never), /redact: change is a text/],
    [() => audit(undefined as never), /audit: log is missing/],
  ])('refuses wrong options', (make, message) => {
    expect(make).toThrow(message)
  })

  it('takes the least of each option', () => {
    expect(cache({ maxAgeMs: 0, maxEntries: 1 }).name).toBe('cache')
    expect(rateLimit({ maxCalls: 1, perMs: 1 }).name).toBe('rateLimit')
  })
})
