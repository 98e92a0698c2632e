import { createRuntime, defineAgent, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { manualClock, scriptedModel, waitUntilSettled } from '@tallystick/testkit'
import { defineTool, ToolError, type RetryOptions } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { signalsOf } from './one-call.ts'

const failing = (thrown: () => unknown, retry: RetryOptions | undefined) =>
  defineTool({
    name: 'look',
    description: 'Looks.',
    input: z.object({}),
    effect: 'read',
    retry,
    execute: () => {
      throw thrown()
    },
  })

const again = async (thrown: () => unknown, retry: RetryOptions | undefined): Promise<unknown> => {
  const [signal] = await signalsOf(failing(thrown, retry), {})
  const { retryable, retryAfterMs } = signal as { retryable?: true; retryAfterMs?: number }
  return { retryable, retryAfterMs }
}

const twice: RetryOptions = { maxAttempts: 2 }
const yes = { retryable: true, retryAfterMs: undefined }
const no = { retryable: undefined, retryAfterMs: undefined }

describe('what a tool says of trying again', () => {
  it.each<[string, () => unknown, RetryOptions | undefined, unknown]>([
    ['any error may be tried again', () => new Error('503'), twice, yes],
    ['also what is not an error', () => 'busy', twice, yes],
    ['not without retry', () => new Error('503'), undefined, no],
    ['not words meant for the model', () => new ToolError('There is no such file.'), twice, no],
    ['unless they say so', () => new ToolError('Busy.', { retryable: true }), twice, yes],
    [
      'or how long to wait',
      () => new ToolError('Busy.', { retryAfterMs: 9 }),
      twice,
      { ...yes, retryAfterMs: 9 },
    ],
    [
      'or that there is nothing to wait for',
      () => new ToolError('Busy.', { retryAfterMs: 0 }),
      twice,
      { ...yes, retryAfterMs: 0 },
    ],
    ['not where they say no', () => new ToolError('Busy.', { retryAfterMs: 9, retryable: false }), twice, no],
    ['a wait that is not a time is none', () => new ToolError('Busy.', { retryAfterMs: NaN }), twice, yes],
    ['nor is one for ever', () => new ToolError('Busy.', { retryAfterMs: Infinity }), twice, yes],
    ['nor is one in the past', () => new ToolError('Busy.', { retryAfterMs: -1 }), twice, yes],
    ['as the rule says', () => new Error('404'), { ...twice, when: (e) => String(e).includes('503') }, no],
    ['the rule decides about all', () => new ToolError('Gone.'), { ...twice, when: () => true }, yes],
    ['a rule that answers no boolean allows nothing', () => 1, { ...twice, when: () => 'yes' as never }, no],
    [
      'nor one that throws',
      () => 1,
      {
        ...twice,
        when: () => {
          throw new Error('oops')
        },
      },
      no,
    ],
  ])('%s', async (_name, thrown, retry, expected) => {
    expect(await again(thrown, retry)).toEqual(expected)
  })

  it('is not said of a result that cannot be shown, nor of a call that was cancelled', async () => {
    const tool = defineTool({
      name: 'look',
      description: 'Looks.',
      input: z.object({}),
      effect: 'read',
      retry: twice,
      execute: () => new Map(),
    })
    const [ending] = await signalsOf(tool, {})
    expect(ending).toMatchObject({ outcome: 'failed' })
    expect(ending).not.toHaveProperty('retryable')
  })
})

describe('defineTool with retry', () => {
  it('keeps the whole policy, and not the rule', () => {
    expect(failing(() => 1, { maxAttempts: 3, when: () => true }).retry).toEqual({
      maxAttempts: 3,
      baseMs: 500,
      capMs: 30_000,
      maxRetryAfterMs: 120_000,
    })
    expect(
      failing(() => 1, { maxAttempts: 3, baseMs: 1, capMs: 2, maxRetryAfterMs: 3, maxTotalMs: 4 }).retry,
    ).toEqual({ maxAttempts: 3, baseMs: 1, capMs: 2, maxRetryAfterMs: 3, maxTotalMs: 4 })
    expect(failing(() => 1, undefined)).not.toHaveProperty('retry')
  })

  it('refuses a write whose failed calls may have taken effect', () => {
    const write = (more: object) => () =>
      defineTool({
        name: 'pay',
        description: 'Pays.',
        input: z.object({}),
        effect: 'write',
        execute: () => 'paid',
        retry: twice,
        ...more,
      })
    expect(write({})).toThrow(
      /The tool pay is a write with retry, and a failed write may have taken effect\. Give/,
    )
    expect(write({ recovery: 'report' })).toThrow(/recovery 'rerun'/)
    expect(write({ recovery: 'rerun' })().retry).toMatchObject({ maxAttempts: 2 })
    expect(write({ retry: { ...twice, when: () => true } })().retry).toMatchObject({ maxAttempts: 2 })
  })

  it.each([
    [{ attempts: 3 }, 'retry.attempts is not an option. Did you mean retry.maxAttempts?'],
    [{ maxAttempts: 3, backoffMs: 5 }, 'Did you mean retry.baseMs?'],
    [{ maxAttempts: 0 }, 'a whole number of at least 1'],
    [{ maxAttempts: 1.5 }, 'a whole number of at least 1'],
    [{ maxAttempts: 2, when: true }, 'retry.when is true'],
    [3, 'retry is 3; expected an object'],
  ])('refuses %j', (retry, message) => {
    expect(() => failing(() => 1, retry as never)).toThrow(message)
  })

  it('is tried again by a runtime, with one key and one context, and its attempts on record', async () => {
    const keys: string[] = []
    const tool = defineTool({
      name: 'look',
      description: 'Looks.',
      input: z.object({}),
      effect: 'read',
      retry: { maxAttempts: 3, baseMs: 60_000 },
      execute: (_input, { attempt, idempotencyKey }) => {
        keys.push(idempotencyKey)
        if (attempt < 3) throw new Error('503')
        return `attempt ${attempt}`
      },
    })
    const model = scriptedModel([{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }])
    const agent = defineAgent({ name: 'a', instructions: '', model, tools: [tool] })
    const [clock, ledger] = [manualClock(), memoryLedger()]
    const host = { clock, random: () => 0, report: () => {} }
    const run = createRuntime({ ledger, agents: [agent], host }).run(agent, 'Look.')
    expect((await waitUntilSettled(clock, run.result)).status).toBe('done')
    const events: RuntimeEvent[] = await Array.fromAsync(ledger.read(run.id))
    const kinds = events.flatMap((event) =>
      event.type === 'tool_started' || event.type === 'tool_attempt_failed' || event.type === 'tool_result'
        ? [event.type]
        : [],
    )
    expect(kinds).toEqual([
      ...['tool_started', 'tool_attempt_failed', 'tool_started', 'tool_attempt_failed'],
      ...['tool_started', 'tool_result'],
    ])
    expect(new Set(keys).size).toBe(1)
    expect(keys).toHaveLength(3)
    expect(clock.pending).toBe(0)
  })
})
