import { createRuntime, defineAgent, memoryLedger, type Tool, joinText } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { callTool, checkLaws, manualClock, scriptedModel, waitUntilSettled } from '@tallystick/testkit'
import {
  defineTool,
  settledLater,
  wrapTools,
  type ToolContext,
  type ToolMiddleware,
  audit,
  cache,
  image,
  rateLimit,
  redact,
  text,
  ToolError,
  type AuditEntry,
  dryRun,
} from '@tallystick/tools'
import * as fc from 'fast-check'
import { Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { endingOf, signalsOf, toolRun, callContext } from './one-call.ts'

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

describe('wrapTools', () => {
  it('puts the first middleware outermost, around one start, and keeps the tool as it is shown and checked', async () => {
    const order: string[] = []
    const noting = (name: string): ToolMiddleware => ({
      name,
      run: async (call, next) => {
        order.push(
          `${name} ${call.tool} ${call.attempt} ${call.idempotencyKey} ${JSON.stringify(call.input)}`,
        )
        const ending = await next()
        order.push(`${name} ends`)
        return ending
      },
    })
    const inner = tool()
    const outer = wrap(inner, noting('a'), noting('b'))
    expect(await endingOf(outer, { n: 5 })).toEqual({ outcome: 'success', text: 'got 5' })
    expect(order).toEqual(['a get 1 key-1 {"n":5}', 'b get 1 key-1 {"n":5}', 'b ends', 'a ends'])
    const { name, description, inputSchema, effect, recovery } = inner
    expect(outer).toMatchObject({ name, description, inputSchema, effect, recovery })
    expect(await callTool(outer, { n: 'five' })).toMatchObject({ outcome: 'invalid_input' })
    expect(order).toHaveLength(4)
  })

  it('runs nothing inside of middleware that does not ask for it', async () => {
    let ran = 0
    const closed: ToolMiddleware = {
      name: 'closed',
      run: () => ({ outcome: 'failed', content: [{ type: 'text', text: 'Closed on Sundays.' }] }),
    }
    expect(
      await endingOf(
        wrap(
          tool(() => ++ran),
          closed,
        ),
        {},
      ),
    ).toEqual({ outcome: 'failed', text: 'Closed on Sundays.' })
    expect(ran).toBe(0)
  })

  it('runs the tool once, however often it is asked for', async () => {
    let ran = 0
    const greedy: ToolMiddleware = {
      name: 'greedy',
      run: async (_call, next) => (await next(), await next()),
    }
    const { outcome, text } = await endingOf(
      wrap(
        tool(() => ++ran),
        greedy,
      ),
      {},
    )
    expect([outcome, ran]).toEqual(['failed', 1])
    expect(text).toBe(
      'The tool was run, but greedy failed around it (TypeError: The middleware greedy called next() twice), so its result is not shown.',
    )
  })

  it('fails a call around which something throws, and shows nothing of the result', async () => {
    const before: ToolMiddleware = {
      name: 'before',
      run: () => {
        throw new Error('no audit, no call')
      },
    }
    const after: ToolMiddleware = {
      name: 'after',
      run: async (_call, next) => {
        await next()
        throw new Error('cannot redact')
      },
    }
    expect(await endingOf(wrap(tool(), before), {})).toEqual({
      outcome: 'failed',
      text: 'Error: no audit, no call',
    })
    const { text } = await endingOf(
      wrap(
        tool(() => 'secret', { effect: 'write' }),
        after,
      ),
      {},
    )
    expect(text).toContain('after failed around it (Error: cannot redact)')
    expect(text).toContain('It may have taken effect')
    expect(text).not.toContain('secret')
  })

  it('passes progress, deferrals and what a tool says of trying again', async () => {
    const pass: ToolMiddleware = { name: 'pass', run: (_call, next) => next() }
    const reporting = tool((_input, { progress }) => {
      progress({ done: 0.5 })
      return settledLater({ externalId: 'job' })
    })
    expect(await signalsOf(wrap(reporting, pass, pass), {})).toEqual([
      { type: 'tool_progressed', data: { done: 0.5 } },
      { type: 'tool_deferred', externalId: 'job' },
    ])
    const failing = tool(
      () => {
        throw new Error('503')
      },
      { retry: { maxAttempts: 2 } },
    )
    expect((await signalsOf(wrap(failing, pass), {}))[0]).toMatchObject({
      outcome: 'failed',
      retryable: true,
    })
    expect(wrap(failing, pass).retry).toEqual(failing.retry)
  })

  it('keeps how a tool is reconciled, also where its class has that, and adds it to no other tool', async () => {
    const pass: ToolMiddleware = { name: 'pass', run: (_call, next) => next() }
    const ofClass = Object.assign(
      Object.create({
        reconcile(this: { readonly finding: object }) {
          return this.finding
        },
      }) as object,
      tool(),
      { finding: { state: 'not_done' } },
    ) as unknown as Tool
    expect(await wrap(ofClass, pass).reconcile?.({} as never)).toEqual({ state: 'not_done' })
    expect('reconcile' in wrap(tool(), pass)).toBe(false)
  })

  it.each([
    ['enough', 'enough'],
    ['', 'The call was cancelled'],
  ])('says why a call was cancelled: %j', async (reason, why) => {
    const cancelled$ = new Subject<string>()
    const waiting: ToolMiddleware = {
      name: 'waiting',
      run: ({ signal }, next) => {
        cancelled$.next(reason)
        return next().then((ending) => {
          const text = `${(signal.reason as Error).name}: ${(signal.reason as Error).message}`
          return { ...ending, content: [{ type: 'text', text }] }
        })
      },
    }
    expect((await endingOf(wrap(tool(), waiting), {}, { cancelled$ })).text).toBe(`AbortError: ${why}`)
    expect(cancelled$.observed).toBe(false)
  })

  it('shows of a failure around a tool two thousand characters', async () => {
    const failing = (length: number): ToolMiddleware => ({
      name: 'failing',
      run: async (_call, next) => {
        await next()
        throw new Error('x'.repeat(length - 'Error: '.length))
      },
    })
    const shown = async (length: number) => (await endingOf(wrap(tool(), failing(length)), {})).text
    expect(await shown(2_000)).toContain('x), so its result')
    expect(await shown(2_001)).toContain('x … (cut)), so its result')
  })

  it('lets go of everything when no caller waits any more', async () => {
    const seen: string[] = []
    const holding: ToolMiddleware = {
      name: 'holding',
      run: async ({ signal }, next) => {
        signal.addEventListener('abort', () => seen.push('outer'))
        try {
          return await next()
        } finally {
          seen.push('let go')
        }
      },
    }
    const hanging = tool((_input, { signal }) => {
      signal.addEventListener('abort', () => seen.push('tool'))
      return new Promise(() => {})
    })
    const running = wrap(hanging, holding).run(toolRun({})).subscribe()
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    running.unsubscribe()
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    expect(seen.toSorted()).toEqual(['let go', 'outer', 'tool'])
  })

  it('hands a cancel to the tool, and keeps what it still says', async () => {
    const cancelled$ = new Subject<string>()
    const pass: ToolMiddleware = { name: 'pass', run: (_call, next) => next() }
    const stopping = tool(
      (_input, { signal }) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve('half'))),
    )
    const ending = endingOf(wrap(stopping, pass), {}, { cancelled$ })
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    cancelled$.next('enough')
    expect(await ending).toEqual({ outcome: 'success', text: 'half' })
  })

  it('refuses what is not a tool, no middleware, or an agent', () => {
    expect(() => wrapTools([{} as Tool], [])).toThrow(/tools\[0\]/)
    expect(() => wrapTools([tool()], [{ name: '', run: () => ({}) as never }])).toThrow(
      /middleware\[0\]\.name/,
    )
    expect(() => wrapTools([tool()], [{ name: 'a' } as never])).toThrow(/middleware\[0\]\.run/)
    expect(() => wrapTools([{ ...tool(), child: 'helper' }], [])).toThrow(/Wrap the tools of that agent/)
  })

  it('keeps laws 1, 2 and 8 and leaves no timer, whatever middleware and tools do', async () => {
    const behaviour = fc.constantFrom('pass', 'throw', 'hang', 'skip', 'twice', 'late')
    const middlewareOf = (does: string): ToolMiddleware => ({
      name: does,
      run: async (_call, next) => {
        if (does === 'throw') throw new Error('broken')
        if (does === 'hang') return await new Promise(() => {})
        if (does === 'skip') return { outcome: 'success', content: [{ type: 'text', text: 'served' }] }
        const ending = await next()
        if (does === 'late') throw new Error('too late')
        return does === 'twice' ? await next() : ending
      },
    })
    await fc.assert(
      fc
        .asyncProperty(
          fc.array(behaviour, { maxLength: 3 }),
          fc.constantFrom('return', 'throw', 'hang'),
          fc.constantFrom(undefined, 3, 6),
          fc.boolean(),
          async (layers, does, cancelAt, retries) => {
            const inner = tool(
              async () => {
                if (does === 'throw') throw new Error('broken')
                return does === 'hang' ? await new Promise(() => {}) : 'done'
              },
              { timeoutMs: 100, ...(retries && { retry: { maxAttempts: 2, baseMs: 10 } }) },
            )
            const tools = wrapTools([inner], layers.map(middlewareOf))
            const toolCalls = [1, 2].map((n) => ({ name: 'get', input: { n } }))
            const model = scriptedModel([{ toolCalls }, { text: 'Done.' }])
            const agent = defineAgent({ name: 'a', instructions: '', model, tools })
            const [clock, ledger] = [manualClock(), memoryLedger()]
            const host = { clock, random: () => 0, report: () => {} }
            const run = createRuntime({ ledger, agents: [agent], host }).run(agent, 'Go.')
            run.events$.subscribe(({ seq }) => seq === cancelAt && void run.cancel('enough').catch(() => {}))
            expect((await waitUntilSettled(clock, run.result)).status).toBe('done')
            const events = await Array.fromAsync(ledger.read(run.id))
            auditAll(events)
            expect(checkLaws(events)).toEqual([])
            expect(clock.pending).toBe(0)
          },
        )
        .beforeEach(newTask),
      { numRuns: tries(60) },
    )
  })
})

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

describe('dryRun', () => {
  const work = (): string => ''
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ euros: z.number() }),
    effect: 'write',
    approval: 'always',
    execute: () => {
      throw new Error('paid for real')
    },
  })

  const get = defineTool({
    name: 'get',
    description: 'Gets.',
    input: z.object({ n: z.number() }),
    effect: 'read',
    execute: ({ n }) => `got ${n}`,
  })

  it('describes writes instead of running them, on record as skipped, asks no person, and runs reads', async () => {
    const words = ({ tool: name, input }: { tool: string; input: JsonObject }): string =>
      name === 'pay' ? `${JSON.stringify(input['euros'])} euros would have been paid.` : ''
    const tools = dryRun([pay, get], { describe: words })
    const toolCalls = [
      { name: 'pay', input: { euros: 5 } },
      { name: 'get', input: { n: 1 } },
      { name: 'pay', input: { euros: 'five' } },
    ]
    const model = scriptedModel([{ toolCalls }, { text: 'Done.' }])
    const agent = defineAgent({ name: 'a', instructions: '', model, tools })
    const ledger = memoryLedger()
    const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Pay.')
    expect((await run.result).reason).toBe('answered')
    const events = await Array.fromAsync(ledger.read(run.id))
    expect(checkLaws(events)).toEqual([])
    const results = events.filter((event) => event.type === 'tool_result')
    expect(results.map(({ outcome }) => outcome).toSorted()).toEqual(['invalid_input', 'skipped', 'success'])
    const skipped = results.find(({ outcome }) => outcome === 'skipped')
    expect(joinText(skipped!.content)).toBe(
      'This is a dry run, in which nothing is changed. 5 euros would have been paid. A person would have been asked first. ' +
        'Continue as if it were done, and say in your answer that it was not.',
    )
    expect(events.filter(({ type }) => type === 'tool_started')).toHaveLength(1)
  })

  it('describes a write plainly where the words are no text, and cuts what is long', async () => {
    const text = async (describe: () => unknown): Promise<string> =>
      (await callTool(dryRun([pay], { describe: describe as never })[0]!, { euros: 5 })).text
    for (const none of ['', 5, undefined])
      expect(await text(() => none)).toContain('pay would have been called with {"euros":5}.')
    expect(await text(() => 'x'.repeat(2_000))).toContain(` ${'x'.repeat(2_000)} A person`)
    expect(await text(() => 'x'.repeat(2_001))).toMatch(/ x{1,1999} … \(cut\) A person/)
  })

  it('is checked when it is made', () => {
    expect(() => dryRun([{}] as never)).toThrow('dryRun: tools[0] is an object; expected a tool')
    expect(() => dryRun([pay], { describe: 'x' as never })).toThrow('dryRun: describe is a text')
    expect(() => dryRun([pay], { words: work } as never)).toThrow('dryRun: words is not an option')
  })

  it('leaves a handoff as it is', () => {
    const over = { ...pay, handoff: { to: 'other' } } as never
    expect(dryRun([over])[0]).toBe(over)
  })

  it('never runs a write, and describes it plainly where no words are given', async () => {
    const [dry] = dryRun([pay])
    expect(() => dry!.run(toolRun({ euros: 5 }))).toThrow(/part of a dry run/)
    expect((await callTool(dry!, { euros: 5 })).text).toContain(
      'pay would have been called with {"euros":5}.',
    )
    const [broken] = dryRun([pay], {
      describe: () => {
        throw new Error('oops')
      },
    })
    expect((await callTool(broken!, { euros: 5 })).text).toContain(
      'pay would have been called with {"euros":5}.',
    )
  })
})
