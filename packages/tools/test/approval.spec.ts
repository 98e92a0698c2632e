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

async function verdictOf(approval: ApprovalPolicy<Payment>, amount: number, to = 'DE'): Promise<unknown> {
  const tool = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ amount: z.number(), to: z.string() }),
    effect: 'write',
    approval,
    execute: () => '',
  })
  const verdict = await tool.check({ amount, to }, callContext)
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
    expect(await verdictOf(anyOf(), 7)).toBe(false)
  })

  it('allOf asks when all of them do', async () => {
    const policy = allOf(large, foreign, 'always')
    expect(await verdictOf(policy, 107)).toBe(false)
    expect(await verdictOf(policy, 107, 'FR')).toBe('over 100; abroad')
    expect(await verdictOf(allOf(large, 'never'), 107)).toBe(false)
    expect(await verdictOf(allOf(), 107)).toBe(false)
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
    expect(await verdictOf(anyOf(whenInput(() => undefined as never)), 7)).toBe(false)
    expect(
      await verdictOf(
        anyOf(() => undefined as never),
        7,
      ),
    ).toBe('denied')
  })
})
