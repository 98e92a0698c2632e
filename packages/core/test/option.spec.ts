import { describe, expect, it } from 'vitest'
import { ConfigurationError, type Limits } from '@tallystick/core'
import { option } from '@tallystick/core/internal'
import type { RetryPolicy } from '@tallystick/core/vocabulary'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { calledModel, offeredTool, retryPolicy, someLimits } from '../src/agent/agent.ts'
import { findNearestName } from '../src/values/text.ts'
import {
  placeFault,
  longTime,
  milliseconds,
  type Schema,
  requireNoPromise,
  requireOptions,
} from '../src/values/option.ts'

const takes = (check: Schema, value: unknown): boolean => check(value) === undefined
const says = (check: Schema, value: unknown): string => {
  const { path = '', what = 'taken' } = placeFault('x', check(value)) ?? {}
  return `${path} ${what}`.trim()
}

describe('the least and the most that a number may be', () => {
  const hundredYears = 100 * 365 * 24 * 3_600_000
  it.each<readonly [string, Schema, readonly unknown[], readonly unknown[]]>([
    [
      'of at least 1',
      option.numberFrom(1),
      [1, 1.5, 1e300],
      [0.99, -1, Number.NaN, Infinity, '1', null, undefined],
    ],
    ['whole, of at least 0', option.numberFrom(0, { whole: true }), [0, 7], [-1, 0.5, 2 ** 53]],
    ['of a timer', milliseconds, [1, 2_147_483_647], [0, 1.5, 2_147_483_648]],
    ['as long as a person needs', longTime, [1, 1.5, hundredYears], [0.5, hundredYears + 1, Infinity]],
  ])('%s', (_name, check, taken, refused) => {
    expect(taken.filter((value) => !takes(check, value))).toEqual([])
    expect(refused.filter((value) => takes(check, value))).toEqual([])
  })

  it.each<readonly [keyof Limits, number]>([
    ['maxTurns', 0],
    ['maxToolCalls', 0],
    ['maxToolCallsPerTurn', 0],
    ['maxTotalTokens', 0],
    ['maxTotalInputTokens', 0],
    ['maxTotalOutputTokens', 0],
    ['maxCostUsd', 0],
    ['maxDurationMs', 0],
    ['maxRepeats', 0],
    ['maxConcurrency', 1],
    ['maxApprovalMs', 1],
    ['graceMs', 0],
  ])('that limits %s is %i', (name, least) => {
    expect(takes(someLimits, { [name]: least })).toBe(true)
    expect(takes(someLimits, { [name]: undefined })).toBe(true)
    expect(says(someLimits, { [name]: least - 0.5 })).toMatch(
      new RegExp(`^x.${name} is .*; expected a .*number`),
    )
  })

  it.each<readonly [boolean, readonly (keyof Limits)[]]>([
    [true, ['maxCostUsd', 'maxDurationMs', 'maxApprovalMs', 'graceMs']],
    [false, ['maxTurns', 'maxToolCalls', 'maxToolCallsPerTurn', 'maxRepeats', 'maxConcurrency']],
    [false, ['maxTotalTokens', 'maxTotalInputTokens', 'maxTotalOutputTokens']],
  ])('that may be a fraction: %s for %j', (mayBe, names) => {
    for (const name of names) expect([name, takes(someLimits, { [name]: 1.5 })]).toEqual([name, mayBe])
    expect(takes(someLimits, { maxCallsByTool: { look: 1.5 } })).toBe(false)
  })

  it('of the calls of one tool may be zero, and nothing but a policy follows at a limit', () => {
    expect(takes(someLimits, { maxCallsByTool: { look: 0 } })).toBe(true)
    expect(says(someLimits, { maxCallsByTool: { look: -1 } })).toContain('x.maxCallsByTool.look is -1')
    for (const onLimit of ['finalize', 'stop', 'ask']) expect(takes(someLimits, { onLimit })).toBe(true)
    expect(takes(someLimits, { onLimit: 'go' })).toBe(false)
  })

  it.each<readonly [keyof RetryPolicy, number]>([
    ['maxAttempts', 1],
    ['baseMs', 0],
    ['capMs', 0],
    ['maxRetryAfterMs', 0],
    ['maxTotalMs', 0],
  ])('of a retry, %s, is %i', (name, least) => {
    expect(takes(retryPolicy, { [name]: least })).toBe(true)
    expect(takes(retryPolicy, { [name]: least - 0.5 })).toBe(false)
    expect(takes(retryPolicy, { [name]: undefined })).toBe(true)
  })
})

describe('a value that is not an option', () => {
  it.each<readonly [Schema, unknown, string]>([
    [option.anyText, undefined, 'x is missing: give a text'],
    [option.anyText, null, 'x is null; expected a text'],
    [option.anyText, 3, 'x is 3; expected a text'],
    [option.anyText, false, 'x is false; expected a text'],
    [option.anyText, [], 'x is a list; expected a text'],
    [option.anyText, {}, 'x is an object; expected a text'],
    [option.anyText, Promise.resolve(), 'x is a promise (await it first); expected a text'],
    [option.anyText, () => 1, 'x is a function; expected a text'],
    [option.anyText, async () => 1, 'x is an async function; expected a text'],
    [option.anyText, 1n, 'x is bigint; expected a text'],
    [option.filledText, '', 'x is an empty text; expected a text that is not empty'],
    [option.filledText, ' ', 'x is a text; expected a text that is not empty'],
    [option.trueOrFalse, 'true', "x is a text, 'true'; expected true or false"],
    [
      option.plainFunction,
      'f',
      'x is a text; expected a function that is not async, since its answer is used at once',
    ],
    // oxlint-disable-next-line unicorn/no-thenable -- no promise, for all its name
    [option.anyText, { then: 1 }, 'x is an object; expected a text'],
    [option.anyFunction, {}, 'x is an object; expected a function'],
    [option.listOf(option.anyText), {}, 'x is an object; expected a list, as in [ … ]'],
    [option.listOf(option.anyText), ['a', 3], 'x[1] is 3; expected a text'],
    [option.recordOf(option.anyText), [], 'x is a list; expected an object'],
    [option.recordOf(option.anyText), { a: 'a', b: 3 }, 'x.b is 3; expected a text'],
    [option.anyObject, Promise.resolve(), 'x is a promise (await it first); expected an object'],
    [option.oneOf(['read', 'write']), undefined, "x is missing; use one of 'read', 'write'"],
    [
      option.oneOf(['read', 'write']),
      'raed',
      "x is 'raed'; use one of 'read', 'write'. Did you mean 'read'?",
    ],
    [option.oneOf(['read']), 'y'.repeat(99), `x is '${'y'.repeat(40)}'; use one of 'read'`],
    [option.oneOf(['read']), 3, "x is 3; use one of 'read'"],
    [option.textOr(['any'], option.anyObject), 'nay', "x is 'nay'; use one of 'any'. Did you mean 'any'?"],
    [option.textOr(['any'], option.anyObject), 3, 'x is 3; expected an object'],
    [option.numberFrom(1), '8', "x is a text, '8'; expected a finite number of at least 1"],
    [
      option.milliseconds,
      `${'9'.repeat(99)}s`,
      `x is a text, '${'9'.repeat(40)}'; expected a whole number of milliseconds from 1 to 2147483647`,
    ],
    [
      option.longTime,
      '',
      'x is an empty text; expected a number of milliseconds from 1 to 3153600000000 (a hundred years)',
    ],
  ])('is named with what is expected (%#)', (check, value, message) => {
    expect(says(check, value)).toBe(message)
  })

  it('may be left out where it is optional, within objects and records', () => {
    expect(takes(option.maybe(option.anyText), undefined)).toBe(true)
    expect(takes(option.maybe(option.anyText), 3)).toBe(false)
    expect(takes(option.recordOf(option.anyText), { a: undefined })).toBe(true)
    expect(takes(option.listOf(option.anyText), [undefined])).toBe(false)
    expect(takes(option.fields<{ a: string }>({ a: option.anyText }), { a: 'a', b: undefined })).toBe(true)
  })

  it('is refused by who was given it, with its name where it has one', () => {
    expect(() => requireOptions('store', option.anyText, 'a')).not.toThrow()
    expect(() => requireOptions('store', option.anyText, 3)).toThrow(
      'store: what it was given is 3; expected a text.',
    )
    expect(() => requireOptions('store', option.anyText, 3, 'path')).toThrow(
      'store: path is 3; expected a text.',
    )
  })

  it('is a promise of code whose answer is used at once, which ends no process', async () => {
    expect(() => requireNoPromise('The rule', 3)).not.toThrow()
    expect(() => requireNoPromise('The rule', Promise.reject(new Error('late')))).toThrow(ConfigurationError)
    await Promise.resolve()
  })
})

describe('a name that is near another', () => {
  const known = ['maxTurns', 'limits', 'sessionId', 'guardrails', 'output', 'idleMs']
  it.each([
    ['maxTurn', 'maxTurns'],
    ['turnsMax', 'maxTurns'],
    ['MAXTURNS', 'maxTurns'],
    ['max_turns', 'maxTurns'],
    ['maxTrnus', 'maxTurns'],
    ['limit', 'limits'],
    ['lmiits', 'limits'],
    ['session', 'sessionId'],
    ['idle', 'idleMs'],
    ['guardrial', 'guardrails'],
    ['outptu', 'output'],
    ['theSessionIdOfMyUser', 'sessionId'],
    ['maxColours', undefined],
    ['sessionStore', undefined],
    ['trnsMax', 'maxTurns'],
    ['idSesion', 'sessionId'],
    ['IDLEMX', 'idleMs'],
    ['utopia', undefined],
    ['colour', undefined],
    ['', undefined],
    ['--', undefined],
    ['limits'.padEnd(65, 's'), undefined],
  ])('%s is meant for %s', (given, name) => {
    expect(findNearestName(given, known)).toBe(name)
  })

  it('is the nearest, and the first of several that are as near', () => {
    expect(findNearestName('output', ['outputs', 'output'])).toBe('output')
    expect(findNearestName('bat', ['cat', 'hat'])).toBe('cat')
    expect(findNearestName('session', ['sessionIdentifier', 'sessionId'])).toBe('sessionId')
    expect(findNearestName('bat', [])).toBeUndefined()
  })

  it('may differ by one letter, and by one in three of the shorter name', () => {
    const wrong = (count: number): string => 'x'.repeat(count)
    expect(findNearestName('ax', ['ab'])).toBe('ab')
    expect(findNearestName('xy', ['ab'])).toBeUndefined()
    expect(findNearestName(`abc${wrong(2)}`, ['abcde'])).toBe('abcde')
    expect(findNearestName(`ab${wrong(3)}`, ['abcde'])).toBeUndefined()
    expect(findNearestName(`abcde${wrong(3)}`, ['abcdefgh'])).toBe('abcdefgh')
    expect(findNearestName(`abcd${wrong(4)}`, ['abcdefgh'])).toBeUndefined()
    expect(findNearestName('IDMX', ['idMs'])).toBe('idMs')
    // Two letters that are swapped are one fault.
    expect(findNearestName('acbd', ['abcd'])).toBe('abcd')
    expect(findNearestName('badc', ['abcd'])).toBeUndefined()
    expect(findNearestName('yb', ['bz'])).toBeUndefined()
    expect(findNearestName('by', ['zb'])).toBeUndefined()
    expect(findNearestName('x', ['yx'])).toBe('yx')
    expect(findNearestName('abcd', ['abcdef'])).toBeUndefined()
  })

  it('has at most 64 characters', () => {
    const [near, far] = ['x'.repeat(64), 'x'.repeat(65)]
    expect([near, far].map((given) => findNearestName(given, [`${near.slice(1)}y`, `${far}y`]))).toEqual([
      ...[`${near.slice(1)}y`, undefined],
    ])
  })
})

describe('a model and a tool', () => {
  const model = scriptedModel([])
  const tool = testTool({ name: 'look' })

  it.each<readonly [Schema, unknown, string]>([
    [calledModel, model, 'taken'],
    [calledModel, { ...model, stream: model.stream.bind(model), maxWebSearches: 0 }, 'taken'],
    [calledModel, { ...model, stream: model.stream.bind(model), maxWebSearches: 'unbounded' }, 'taken'],
    [
      calledModel,
      { ...model, stream: model.stream.bind(model), maxWebSearches: -1 },
      'x has a maxWebSearches that',
    ],
    [
      calledModel,
      { ...model, stream: model.stream.bind(model), maxWebSearches: 0.5 },
      'x has a maxWebSearches that',
    ],
    [
      calledModel,
      { stream: () => 1, provider: 'p', api: 'a' },
      'x does not say its provider, api and modelId',
    ],
    [calledModel, { doStream: () => 1 }, 'x is a model of the AI SDK; wrap it'],
    [calledModel, () => model, 'x is a function; call it, and give the model that it makes'],
    [calledModel, 'gpt', 'x is a text; give a model'],
    [calledModel, {}, 'x is not a model; give one'],
    [calledModel, undefined, 'x is not a model; give one'],
    [offeredTool, tool, 'taken'],
    [
      offeredTool,
      { execute: () => 1 },
      'x is not a tool; make it with defineTool of @tallystick/tools, with effect',
    ],
    [offeredTool, { run: () => 1 }, 'x is not a tool; make it with defineTool of @tallystick/tools'],
    [offeredTool, { ...tool, name: '' }, 'x has no name'],
    [offeredTool, { ...tool, name: 7 }, 'x has no name'],
    [offeredTool, { ...tool, description: undefined }, 'x (look) has no description'],
    [offeredTool, { ...tool, description: '' }, 'taken'],
    [offeredTool, { ...tool, inputSchema: [] }, 'x (look) has no input schema'],
    [offeredTool, { ...tool, effect: 'delete' }, "x (look) cannot be used: its effect is 'delete'"],
    [offeredTool, { ...tool, recovery: 'hope' }, "x (look) cannot be used: its recovery is 'hope'"],
    [
      offeredTool,
      { ...tool, recovery: 'reconcile' },
      'x (look) says recovery reconcile, but has no function',
    ],
    [offeredTool, { ...tool, recovery: 'reconcile', reconcile: () => 1 }, 'taken'],
  ])('is taken or refused with a reason (%#)', (check, value, said) => {
    expect(says(check, value).slice(0, said.length)).toBe(said)
  })
})
