import { ConfigurationError } from '@tallystick/core'
import type { CallVerdict } from '@tallystick/core/vocabulary'
import { allOf, anyOf, defineTool, whenInput } from '@tallystick/tools'
import type { ApprovalPolicy } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { callContext } from './one-call.ts'

interface Payment {
  readonly amount: number
  readonly to: string
}

const large = whenInput(({ amount }: Payment) => amount > 100, 'over 100')
const foreign = whenInput(async ({ to }: Payment) => to !== 'DE', 'abroad')
const round = whenInput(({ amount }: Payment) => amount % 10 === 0)
const broken: ApprovalPolicy<Payment> = () => {
  throw new Error('rules are gone')
}

async function checked(approval: ApprovalPolicy<Payment>, amount: number, to = 'DE'): Promise<CallVerdict> {
  const tool = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ amount: z.number(), to: z.string() }),
    effect: 'write',
    approval,
    execute: () => '',
  })
  return await tool.check({ amount, to }, callContext)
}

async function verdictOf(approval: ApprovalPolicy<Payment>, amount: number, to?: string): Promise<unknown> {
  const verdict = await checked(approval, amount, to)
  if (verdict.kind === 'refuse') return verdict.outcome
  return verdict.kind === 'ask' ? (verdict.reason ?? true) : false
}

describe('approval policies', () => {
  it('whenInput asks when its predicate holds, with its reason', async () => {
    expect(await verdictOf(large, 100)).toBe(false)
    expect(await verdictOf(large, 101)).toBe('over 100')
    expect(await verdictOf(foreign, 1, 'FR')).toBe('abroad')
    expect(await verdictOf(round, 20)).toBe(true)
  })

  it('anyOf asks when one of them does, with the reasons of all that do', async () => {
    const policy = anyOf(large, foreign, round, 'never')
    expect(await verdictOf(policy, 7)).toBe(false)
    expect(await verdictOf(policy, 107)).toBe('over 100')
    expect(await verdictOf(policy, 120, 'FR')).toBe('over 100; abroad')
    expect(await verdictOf(policy, 20)).toBe(true)
    expect(await verdictOf(anyOf(large, 'always'), 7)).toBe(true)
  })

  it('allOf asks when all of them do', async () => {
    const policy = allOf(large, foreign, 'always')
    expect(await verdictOf(policy, 107)).toBe(false)
    expect(await verdictOf(policy, 107, 'FR')).toBe('over 100; abroad')
    expect(await verdictOf(allOf(large, 'never'), 107)).toBe(false)
    expect(await verdictOf(allOf(large), 107)).toBe('over 100')
  })

  it('give the reasons that there are, and `true` without any', async () => {
    const answers = (...given: readonly (string | true)[]) =>
      allOf(...given.map((answer) => () => answer))({}, {} as never)
    expect(await answers('', 'b', true, 'c')).toBe('b; c')
    expect(await answers('', true)).toBe(true)
  })

  it('compose', async () => {
    const policy = anyOf(allOf(large, foreign), allOf(round, large))
    expect(await verdictOf(policy, 107)).toBe(false)
    expect(await verdictOf(policy, 107, 'FR')).toBe('over 100; abroad')
    expect(await verdictOf(policy, 110)).toBe('over 100')
  })

  it('refuse the call when one that they are made of fails, though another one has answered', async () => {
    expect(await verdictOf(anyOf('always', broken), 7)).toBe('denied')
    expect(await verdictOf(allOf('never', broken), 7)).toBe('denied')
  })

  it('refuse the call when one answers nothing that can be used, and name the answer', async () => {
    const textOf = async (approval: ApprovalPolicy<Payment>): Promise<string> => {
      const verdict = await checked(approval, 7)
      return verdict.kind === 'refuse' && verdict.outcome === 'denied' ? verdict.text : verdict.kind
    }
    const answers: readonly [unknown, string][] = [
      [undefined, 'is missing: give'],
      [null, 'is null; expected'],
      [0, 'is 0; expected'],
      [1, 'is 1; expected'],
      [Number.NaN, 'is NaN; expected'],
      [{ secret: 'k' }, 'is an object; expected'],
    ]
    for (const [answer, says] of answers) {
      for (const given of [() => answer as never, () => Promise.resolve(answer as never)]) {
        const whole = `of pay failed (its answer ${says} true, false, a text, or { ask, approvers: { count, roles } }), so`
        expect(await textOf(given)).toContain(whole)
        const part = `of pay failed (the answer of one of its policies ${says} true, false, a text, or { ask, approvers: { count, roles } }), so`
        expect(await textOf(anyOf('always', given))).toContain(part)
        expect(await textOf(allOf('never', given))).toContain(part)
        const own = `of pay failed (the answer of the predicate of whenInput ${says} true or false), so`
        expect(await textOf(whenInput(given))).toContain(own)
        expect(await textOf(whenInput(given, 'large'))).toContain(own)
        expect(await textOf(anyOf(whenInput(given)))).toContain(own)
      }
    }
    expect(await textOf(whenInput(() => '' as never))).toContain('is an empty text; expected true or false')
    expect(await textOf(broken)).toContain('of pay failed, so')
  })

  it('refuse what they cannot be made of', () => {
    const refusal = (make: () => unknown): unknown => {
      try {
        make()
        return undefined
      } catch (error) {
        return error instanceof ConfigurationError ? error.message : error
      }
    }
    expect(refusal(() => whenInput('x' as never))).toBe(
      'whenInput: the predicate is a text; expected a function.',
    )
    expect(refusal(() => whenInput(() => true, 5 as never))).toBe(
      'whenInput: the reason is 5; expected a text.',
    )
    const expected = "expected 'always', 'never' or a function of the input."
    for (const [name, join] of Object.entries({ anyOf, allOf })) {
      expect(refusal(() => join('alway' as never))).toBe(
        `${name}: policies[0] is 'alway'; use one of 'always', 'never'. Did you mean 'always'?`,
      )
      expect(refusal(() => join('never', [large] as never))).toBe(
        `${name}: policies[1] is a list; ${expected}`,
      )
      expect(refusal(() => join(undefined as never))).toContain(`${name}: policies[0] is missing`)
      expect(refusal(() => join())).toContain(`${name}: it got no policy`)
    }
  })
})
