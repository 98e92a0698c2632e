import { defineTool, text, ToolError } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { callContext, endingOf } from './one-call.ts'

describe('check', () => {
  const ran: unknown[] = []
  const book = (approval: unknown) =>
    defineTool({
      name: 'book',
      description: 'Books a table.',
      input: z.object({ seats: z.int().default(2), note: z.string().optional() }),
      effect: 'write',
      approval: approval as 'always',
      execute: (input) => void ran.push(input),
    })

  it('never runs the tool', async () => {
    await book('always').check({ seats: 4 }, callContext)
    await book('never').check({ seats: 4 }, callContext)
    expect(ran).toEqual([])
  })

  it.each<[string, unknown, object]>([
    ['runs without asking for "never"', 'never', { kind: 'run' }],
    ['runs without a policy', undefined, { kind: 'run' }],
    ['asks for "always"', 'always', { kind: 'ask' }],
    ['runs for false', () => false, { kind: 'run' }],
    ['asks for true', () => true, { kind: 'ask' }],
    [
      'asks with the reason that the policy gives',
      async () => 'over budget',
      { kind: 'ask', reason: 'over budget' },
    ],
    ['asks for an empty reason, which is not a permission', () => '', { kind: 'ask' }],
    [
      'shows the policy the input with its defaults',
      (input: object) => JSON.stringify(input),
      { kind: 'ask', reason: '{"seats":2}' },
    ],
    [
      'tells the policy which call of which tool it is',
      (_input: object, context: object) => JSON.stringify(context),
      { kind: 'ask', reason: JSON.stringify({ tool: 'book', effect: 'write', ...callContext }) },
    ],
  ])('%s', async (_title, approval, verdict) => {
    expect(await book(approval).check({}, callContext)).toEqual(verdict)
  })

  it.each<[string, unknown]>([
    [
      'throws',
      () => {
        throw new Error('no such user: secret-7')
      },
    ],
    ['rejects', () => Promise.reject(new Error('secret-7'))],
    ['answers nothing', () => undefined],
    ['answers a number', () => 0],
  ])('refuses the call when the policy %s, and does not say what it threw', async (_title, approval) => {
    const verdict = await book(approval).check({}, callContext)
    expect(verdict).toMatchObject({ kind: 'refuse', outcome: 'denied' })
    expect(verdict).toHaveProperty(
      'text',
      expect.stringMatching(/^Nothing was run: the approval policy of book failed/),
    )
    expect(JSON.stringify(verdict)).not.toContain('secret-7')
  })

  it('refuses an input that does not fit, and asks no policy about it', async () => {
    let asked = 0
    const verdict = await book(() => ++asked > 0).check({ seats: 'two' }, callContext)
    expect(verdict).toEqual({
      kind: 'refuse',
      outcome: 'invalid_input',
      text: 'The input does not fit the schema of book. Nothing was run. Correct it and call the tool again:\n- seats: expected integer, received string',
    })
    expect(asked).toBe(0)
  })

  it('refuses an input that the schema itself fails on', async () => {
    const broken = z.object({
      seats: z.int().refine(() => {
        throw new Error('refine broke')
      }),
    })
    const tool = defineTool({
      name: 'book',
      description: 'Books.',
      input: broken,
      effect: 'read',
      execute: () => '',
    })
    expect(await tool.check({ seats: 1 }, callContext)).toEqual({
      kind: 'refuse',
      outcome: 'invalid_input',
      text: 'Nothing was run: the input could not be checked against the schema of book (Error: refine broke).',
    })
    expect(await endingOf(tool, { seats: 1 })).toEqual({ outcome: 'failed', text: 'Error: refine broke' })
  })
})

describe('a schema of the application', () => {
  it.each([
    ['nothing', undefined],
    ['a number', 7],
    ['issues of no form', { issues: 'many' }],
  ])('that answers %s refuses every input, since it would let every one pass', async (_what, answer) => {
    const jsonSchema = { input: () => ({ type: 'object' }) }
    const input = { '~standard': { version: 1, vendor: 'own', validate: () => answer, jsonSchema } } as never
    const tool = defineTool({ name: 'book', description: 'Books.', input, effect: 'read', execute: () => '' })
    expect(await tool.check({ seats: 1 }, callContext)).toEqual({
      kind: 'refuse',
      outcome: 'invalid_input',
      text: 'Nothing was run: the input could not be checked against the schema of book (TypeError: its validate returned neither a value nor issues).',
    })
  })
})

describe('reconcile', () => {
  const asked: unknown[] = []
  const pay = (answer: () => unknown) =>
    defineTool({
      name: 'pay',
      description: 'Pays a bill.',
      input: z.object({ bill: z.string().transform(Number) }),
      effect: 'write',
      execute: () => '',
      reconcile(input, context) {
        asked.push([input, context])
        return answer() as 'unknown'
      },
    })
  const { runId, turn, toolCallId, context } = callContext
  const call = {
    runId,
    turn,
    toolCallId,
    context,
    attempt: 2,
    idempotencyKey: 'key-1',
    input: { bill: '17' },
  }

  it('asks with the checked input and the key of the call', async () => {
    await pay(() => 'unknown').reconcile?.(call)
    expect(asked).toEqual([
      [{ bill: 17 }, { runId, turn, toolCallId, attempt: 2, idempotencyKey: 'key-1', context }],
    ])
  })

  it.each<[string, () => unknown, object]>([
    [
      'a call that happened has the result that execute would have had',
      () => ({ happened: true, result: { receipt: 9 } }),
      { state: 'done', outcome: 'success', content: [{ type: 'text', text: '{"receipt":9}' }] },
    ],
    [
      'parts stay parts',
      async () => ({ happened: true, result: text('paid') }),
      { state: 'done', outcome: 'success', content: [{ type: 'text', text: 'paid' }] },
    ],
    ['a call that did not happen', () => ({ happened: false }), { state: 'not_done' }],
    ['it is unknown', () => 'unknown', { state: 'unknown' }],
  ])('%s', async (_title, answer, finding) => {
    expect(await pay(answer).reconcile?.(call)).toEqual(finding)
  })

  it.each<[string, () => unknown, string]>([
    ['an answer that is not one', () => undefined, 'reconcile has to return'],
    ['an answer of another shape', () => ({ happened: 'yes' }), 'reconcile has to return'],
    [
      'a throw',
      () => {
        throw new ToolError('bank is down')
      },
      'bank is down',
    ],
  ])('%s leaves the call in doubt, and the runtime reports why', async (_title, answer, why) => {
    await expect(pay(answer).reconcile?.(call)).rejects.toThrow(why)
  })

  it('knows nothing of a call whose input fits the schema no more, and does not ask', async () => {
    asked.length = 0
    expect(await pay(() => ({ happened: true, result: '' })).reconcile?.({ ...call, input: {} })).toEqual({
      state: 'unknown',
    })
    expect(asked).toEqual([])
  })

  it('says that a result which cannot be shown belongs to work that is done', async () => {
    const finding = await pay(() => ({ happened: true, result: 10n })).reconcile?.(call)
    expect(finding).toMatchObject({ state: 'done', outcome: 'failed' })
    expect(JSON.stringify(finding)).toContain('What it does has been done')
  })
})
