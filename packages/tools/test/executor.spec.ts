import type { ToolSignal } from '@tallystick/core/vocabulary'
import { defineTool, ToolError } from '@tallystick/tools'
import type { ToolContext } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { callContext, endingOf, signalsOf, toolRun } from './one-call.ts'

function toolOf(
  execute: (input: unknown, context: ToolContext) => unknown,
  effect: 'read' | 'write' = 'read',
) {
  return defineTool({ name: 'work', description: 'Works.', input: { type: 'object' }, effect, execute })
}

const success = { type: 'tool_ended', outcome: 'success', content: [{ type: 'text', text: 'ok' }] } as const

describe('running a call', () => {
  it('starts when it is subscribed to, and once for each subscription', async () => {
    let starts = 0
    const run = toolOf(() => `start ${++starts}`).run(toolRun({}))
    expect(starts).toBe(0)
    await new Promise<void>((resolve) => void run.subscribe({ complete: resolve }))
    expect(starts).toBe(1)
  })

  it('lends the tool what belongs to the call', async () => {
    let lent: ToolContext | undefined
    await signalsOf(
      toolOf((_input, context) => void (lent = context)),
      {},
      { attempt: 4, idempotencyKey: 'key-9' },
    )
    expect(lent).toMatchObject({ ...callContext, attempt: 4, idempotencyKey: 'key-9' })
    expect(lent?.signal.aborted).toBe(false)
    expect(Object.isFrozen(lent)).toBe(true)
  })

  it('reports progress in order, as it was when it was reported, and then the ending', async () => {
    const tool = toolOf(async (_input, { progress }) => {
      const state = { done: 1 }
      progress(state)
      state.done = 2
      await Promise.resolve()
      progress(state)
      progress('almost')
      return 'ok'
    })
    expect(await signalsOf(tool, {})).toEqual([
      { type: 'tool_progressed', data: { done: 1 } },
      { type: 'tool_progressed', data: { done: 2 } },
      { type: 'tool_progressed', data: 'almost' },
      success,
    ])
  })

  it('names progress that JSON cannot carry in its place, and continues', async () => {
    const tool = toolOf((_input, { progress }) => {
      progress({ size: 1n } as never)
      return 'ok'
    })
    expect(await signalsOf(tool, {})).toEqual([
      {
        type: 'tool_progressed',
        data: '(a progress report was left out: $.size is a bigint, which JSON cannot carry)',
      },
      success,
    ])
  })

  it('does not hear progress after the ending', async () => {
    let late: ToolContext['progress'] | undefined
    const signals: ToolSignal[] = []
    const tool = toolOf((_input, { progress }) => {
      late = progress
      return 'ok'
    })
    await new Promise<void>((resolve) => {
      tool.run(toolRun({})).subscribe({ next: (signal) => void signals.push(signal), complete: resolve })
    })
    late?.({ percent: 101 })
    expect(signals).toEqual([success])
  })

  it('ends once where a thenable settles twice', async () => {
    const restless = {
      // oxlint-disable-next-line unicorn/no-thenable -- a promise of this language settles once; a foreign one may not
      then(resolve: (value: string) => void, reject: (error: Error) => void) {
        resolve('ok')
        reject(new Error('too late'))
        resolve('again')
      },
    }
    expect(
      await signalsOf(
        toolOf(() => restless),
        {},
      ),
    ).toEqual([success])
  })

  it('refuses an input that an approver edited out of shape, and runs nothing', async () => {
    let ran = false
    const tool = defineTool({
      name: 'work',
      description: 'Works.',
      input: { type: 'object', required: ['n'], properties: { n: { type: 'number' } } },
      effect: 'write',
      execute: () => (ran = true),
    })
    const { outcome, text } = await endingOf(tool, { n: 'one' })
    expect([outcome, ran]).toEqual(['invalid_input', false])
    expect(text).toContain('- n: expected number, received string')
  })
})

describe('a tool that fails', () => {
  const hostile = new Proxy(new Error('x'), {
    get: () => {
      throw new Error('trap')
    },
    getPrototypeOf: () => {
      throw new Error('trap')
    },
  })
  it.each<[string, unknown, string]>([
    ['an error', new TypeError('no such city'), 'TypeError: no such city'],
    ['an error without a message', new RangeError(), 'RangeError (without a message)'],
    [
      'an error for the model',
      new ToolError('The city is unknown. Try its English name.'),
      'The city is unknown. Try its English name.',
    ],
    ['a string', 'no luck', 'Error: no luck'],
    ['a number', 404, 'Error: 404'],
    ['nothing', undefined, 'Error: a value of type undefined was thrown'],
    ['null', null, 'Error: null'],
    ['an object', { code: 7 }, 'Error: {"code":7}'],
    ['a bigint', 7n, 'Error: the tool threw something that cannot be described'],
    [
      'a proxy that throws at every touch',
      hostile,
      'Error: the tool threw something that cannot be described',
    ],
  ])('reports %s, thrown at once or later', async (_what, thrown, text) => {
    const atOnce = toolOf(() => {
      throw thrown
    })
    const later = toolOf(() => Promise.reject(thrown))
    expect(await endingOf(atOnce, {})).toEqual({ outcome: 'failed', text })
    expect(await endingOf(later, {})).toEqual({ outcome: 'failed', text })
  })

  it('shows no stack and no cause', async () => {
    const thrown = new Error('outer', { cause: new Error('password=hunter2') })
    const { text } = await endingOf(
      toolOf(() => Promise.reject(thrown)),
      {},
    )
    expect(text).toBe('Error: outer')
  })

  it('is cut where its message is long, but not within a character', async () => {
    const { text } = await endingOf(
      toolOf(() => Promise.reject(new Error('🪵'.repeat(5_000)))),
      {},
    )
    expect(text).toMatch(/^Error: (🪵)+ … \(cut\)$/u)
    expect(text.length).toBeLessThanOrEqual(2_000)
    expect(text.length).toBeGreaterThan(1_990)
  })

  it('may say that it kept a time limit of its own', async () => {
    const tool = toolOf(() =>
      Promise.reject(new ToolError('No answer within 5 s.', { outcome: 'timed_out' })),
    )
    expect(await endingOf(tool, {})).toEqual({ outcome: 'timed_out', text: 'No answer within 5 s.' })
  })

  it.each<['read' | 'write', string]>([
    [
      'read',
      'The tool ran, but what it returned cannot be shown (NotJsonError: $.total is a bigint, which JSON cannot carry).',
    ],
    [
      'write',
      'The tool ran, but what it returned cannot be shown (NotJsonError: $.total is a bigint, which JSON cannot carry). ' +
        'What it does has been done: do not call it again for that.',
    ],
  ])('names what JSON cannot carry in the result of a %s', async (effect, text) => {
    expect(
      await endingOf(
        toolOf(() => ({ total: 1n }), effect),
        {},
      ),
    ).toEqual({ outcome: 'failed', text })
  })
})
