import { createRuntime, defineAgent, memoryLedger, type Tool } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { callTool, checkLaws, manualClock, scriptedModel, waitUntilSettled } from '@tallystick/testkit'
import { defineTool, settledLater, wrapTools, type ToolContext, type ToolMiddleware } from '@tallystick/tools'
import * as fc from 'fast-check'
import { Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { endingOf, signalsOf, toolRun } from './one-call.ts'

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
