import { createRuntime, defineAgent, memoryLedger, type Limits, type RunState } from '@tallystick/core'
import { copyJson, findParsedFault, readJson } from '@tallystick/core/internal'
import { evolve } from '@tallystick/core/machine'
import { toCanonicalJson } from '@tallystick/core/vocabulary'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedStep,
} from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { getOwn, omitUndefined, deepFreeze, deepFreezeOnce, isFrozenOnce } from '../src/values/json.ts'
import { checkedRun, ofType, stage } from './stage.ts'

describe('toCanonicalJson', () => {
  it('orders keys by code unit and leaves out undefined', () => {
    expect(
      toCanonicalJson({ b: 1, a: [true, null, 'x'], é: undefined as never, A: { z: 1e21, y: -0 } }),
    ).toBe('{"A":{"y":0,"z":1e+21},"a":[true,null,"x"],"b":1}')
  })
  it('orders any number of keys, in whichever order they were set', () => {
    const names = Array.from({ length: 60 }, (_, index) => `k${String(index).padStart(2, '0')}`)
    for (const count of [2, 23, 24, 25, 26, 60]) {
      const sorted = names.slice(0, count)
      const text = `{${sorted.map((name) => `"${name}":1`).join(',')}}`
      const mixed = sorted.toSorted((a, b) => (a.slice(2) + a < b.slice(2) + b ? -1 : 1))
      for (const order of [sorted, sorted.toReversed(), mixed]) {
        expect(toCanonicalJson(Object.fromEntries(order.map((name) => [name, 1])))).toBe(text)
      }
    }
    expect(toCanonicalJson({ undefined: 1, '': 2 })).toBe('{"":2,"undefined":1}')
  })
  it('takes no square of the time for many keys', () => {
    const count = 200_000
    const falling = Array.from({ length: count }, (_, index) => [`k${2 * count - index}`, 1])
    expect(toCanonicalJson(Object.fromEntries(falling))).toMatch(
      /^\{"k200001":1,"k200002":1,.*"k400000":1\}$/,
    )
  })
  it('keeps a lone surrogate as an escape', () => {
    expect(toCanonicalJson('\ud800')).toBe('"\\ud800"')
  })
  it('names the place of what JSON cannot carry', () => {
    const wrong: readonly (readonly [unknown, string])[] = [
      [{ a: [1, Number.NaN] }, '$.a[1] is NaN'],
      [{ a: null, b: undefined, c: [{}, null, { d: 1n }], z: Infinity }, '$.c[2].d is a bigint'],
      [{ b: -Infinity, a: { c: () => 1 } }, '$.a.c is a function'],
      [[[true, 'a'], [undefined]], '$[1][0] is undefined'],
      [Symbol('s'), '$ is a symbol'],
    ]
    for (const [value, message] of wrong) {
      expect(() => toCanonicalJson(value as never)).toThrow(
        new TypeError(`${message}, which JSON cannot carry`),
      )
    }
    const circle: Record<string, unknown> = {}
    circle['itself'] = circle
    const before = { a: [() => 1], b: circle }
    expect(() => toCanonicalJson(before as never)).toThrow('$.a[0] is a function, which JSON cannot carry')
    const thrown = new Error('no such field')
    const failing = Object.defineProperty({}, 'a', {
      enumerable: true,
      get: () => {
        throw thrown
      },
    })
    expect(() => toCanonicalJson(failing as never)).toThrow(thrown)
  })
})

describe('copyJson', () => {
  it('has every key of its original, and shares nothing with it', () => {
    const inner = Object.freeze({
      list: Object.freeze([1, Object.freeze({ a: null })]),
      text: 'x',
      no: false,
    })
    const value = Object.freeze({ inner, ['__proto__']: inner, toJSON: 'a text', '': 0 })
    const copy = copyJson(value)
    expect(copy).toStrictEqual(value)
    expect(Object.keys(copy)).toEqual(Object.keys(value))
    expect(copy.inner).not.toBe(inner)
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
    for (const part of [copy, copy.inner, copy['__proto__'], copy.inner.list, copy.inner.list[1]])
      expect(Object.isFrozen(part)).toBe(false)
    expect(copyJson({ left: undefined as never, kept: 1 })).toStrictEqual({ kept: 1 })
  })

  it('keeps keys apart that V8 takes for each other when it reads them from a text', () => {
    const key = (name: string) => ({ x: 1, [name]: 3 })
    // Each order of the two: which one V8 gets wrong depends on what it has read before.
    const values = [
      [key('\\'), key('"')],
      [key('"'), key('\\')],
    ]
    for (const value of [...values, ...values]) expect(copyJson(value)).toStrictEqual(value)
  })
})

describe('a JSON text', () => {
  it.each([
    ['{"id": 9007199254740991}', { id: 9_007_199_254_740_991 }],
    ['{"id": "2512292042121000001"}', { id: '2512292042121000001' }],
    ['{"s": "\\" 1e400", "n": 1.5e10}', { s: '" 1e400', n: 1.5e10 }],
    ['{"size": 18014398509481984}', { size: 2 ** 54 }],
    ['{"ratio": 0.12345678901234567890}', { ratio: 0.123_456_789_012_345_68 }],
    ['[1e-5, 0e9, 0.0000000000000000]', [1e-5, 0, 0]],
  ])(
    'given only numbers that stay what they are, when it is read, then it is its value: %s',
    (text, value) => {
      expect(readJson(text)).toEqual(value)
    },
  )

  it.each(['{"id": 1e400}', '[-1e999]', '{"id": 2512292042121000001}', '[9007199254740993]', '[1e-400]'])(
    'given a number that would become another one, when it is read, then the error names it: %s',
    (text) => {
      const number = /-?[\de-]+(?=[\]}])/.exec(text)![0]
      expect(() => readJson(text)).toThrow(`The number ${number} cannot be read`)
    },
  )

  it('given nesting that no store reads, when it is read, then the error says so', () => {
    expect(() => readJson('['.repeat(600) + ']'.repeat(600))).toThrow('nested deeper than 500 levels')
  })

  it('given a value that was read elsewhere, when a whole number may have been rounded, then that is a fault', () => {
    expect(findParsedFault({ a: [{ id: 2 ** 60 }] })).toContain('may have been rounded')
    expect(findParsedFault({ a: Infinity })).toContain('too large')
    expect(findParsedFault({ a: 1.5, b: 2 ** 53 - 1 })).toBeUndefined()
  })
})

/** Members that every object inherits; and what makes an object another's heir. */
const names = ['constructor', 'toString', 'hasOwnProperty', '__proto__'] as const

/** Asks for a tool once a turn, each time with another input, then answers. */
function steps(name: string, turns: number): readonly ScriptedStep[] {
  const asking = Array.from({ length: turns }, (_, turn) => ({ toolCalls: [{ name, input: { turn } }] }))
  return [...asking, { text: 'Done.' }]
}

/** How the calls of a run ended that asks three times for a tool of that name. */
async function outcomesOf(name: string, limits: Limits = {}): Promise<readonly string[]> {
  const tool = testTool({ name, run: ({ input }) => JSON.stringify(input) })
  const { play, eventsOf } = stage({ steps: steps(name, 3), tools: [tool], limits })
  const result = await play()
  expect(result).toMatchObject({ status: 'done', reason: 'answered', text: 'Done.' })
  const events = checkedRun(await eventsOf(result.runId))
  const end = events.reduce<RunState | undefined>(evolve, undefined)
  expect(Object.entries(end?.totals.toolCallsByTool ?? {})).toEqual([[name, tool.runs.length]])
  return ofType(events, 'tool_result').map(({ outcome }) => outcome)
}

describe('a tool whose name is that of something which every object has', () => {
  it.each(names)('runs as any other: %s', async (name) => {
    expect(await outcomesOf(name)).toEqual(['success', 'success', 'success'])
  })

  it.each(names)('is held to its own limit: %s', async (name) => {
    const maxCallsByTool = JSON.parse(`{${JSON.stringify(name)}:2}`) as Record<string, number>
    expect(await outcomesOf(name, { maxCallsByTool })).toEqual(['success', 'success', 'limit_reached'])
  })

  it.each(names)('has its failures counted: %s', async (name) => {
    const failing = (): string => {
      throw new Error('broken')
    }
    const limits = { maxRepeats: 1, onLimit: 'finalize' } as const
    const tool = testTool({ name, run: failing })
    const { play, eventsOf } = stage({ steps: steps(name, 3), tools: [tool], limits })
    const result = await play()
    expect(result.reason).toBe('repeat_limit')
    const results = ofType(await eventsOf(result.runId), 'tool_result')
    expect(results.map(({ outcome }) => outcome)).toEqual(['failed', 'failed', 'limit_reached'])
  })

  it('is unknown where the agent has no such tool', async () => {
    const { play, eventsOf } = stage({ steps: steps('constructor', 1), tools: [] })
    const { runId, reason } = await play()
    expect(reason).toBe('answered')
    expect(ofType(await eventsOf(runId), 'tool_result')).toMatchObject([{ outcome: 'unknown_tool' }])
  })
})

describe('a model whose name is that of something which every object has', () => {
  it.each(names)('has no price that was not given: %s', async (name) => {
    const clock = manualClock()
    const model = scriptedModel([{ text: 'Done.', usage: { inputTokens: 9, outputTokens: 1 } }], name)
    const agent = defineAgent({ name: 'agent', instructions: 'Act.', model })
    const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent], prices: {}, host: { clock } })
    const result = await waitUntilSettled(clock, runtime.run(agent, 'Go.').result)
    expect(result).toMatchObject({ status: 'done', reason: 'answered' })
    expect(result.costUsd).toBeUndefined()
  })
})

it('fields that hold something are kept as plain fields, under any name, and others are left out', () => {
  const given = JSON.parse('{"a":1,"__proto__":{"b":2},"c":null,"d":false,"e":0,"f":""}') as object
  const kept = omitUndefined({ ...given, left: undefined })
  expect(JSON.stringify(kept)).toBe('{"a":1,"__proto__":{"b":2},"c":null,"d":false,"e":0,"f":""}')
  expect(Object.getPrototypeOf(kept)).toBe(Object.prototype)
  const plain = { enumerable: true, writable: true, configurable: true }
  expect(Object.getOwnPropertyDescriptor(kept, '__proto__')).toEqual({ value: { b: 2 }, ...plain })
  expect(Object.getOwnPropertyDescriptor(kept, 'c')).toEqual({ value: null, ...plain })
  expect(omitUndefined(Object.create({ inherited: 1 }) as object)).toEqual({})
  expect(omitUndefined({ ['__proto__']: undefined })).toEqual({})
})

it('a key is found where the record itself has it, and not where every object has it', () => {
  expect([getOwn({ a: 1 }, 'a'), getOwn({ a: 1 }, 'b')]).toEqual([1, undefined])
  expect(getOwn<unknown>({}, 'constructor')).toBeUndefined()
  expect(getOwn<unknown>({ toString: 1 }, 'toString')).toBe(1)
})

describe('a deeply frozen copy', () => {
  it('is frozen to its bottom, and shares nothing that its giver can change', () => {
    const given = { list: [{ a: 'a' }], inner: { b: [1] } }
    const frozen = deepFreeze(given)
    given.list[0]!.a = 'forged'
    given.inner.b.push(2)
    expect(frozen).toStrictEqual({ list: [{ a: 'a' }], inner: { b: [1] } })
    const objects = [frozen, frozen.list, frozen.list[0], frozen.inner, frozen.inner.b]
    expect(objects.filter((object) => !Object.isFrozen(object))).toEqual([])
    expect([given, given.list, given.inner].filter((object) => Object.isFrozen(object))).toEqual([])
  })

  it('has no zero with a sign, at no depth', () => {
    const zeros = deepFreeze({ a: -0, b: [-0, { c: -0 }] })
    expect(zeros).toStrictEqual({ a: 0, b: [0, { c: 0 }] })
    expect(deepFreeze(-0)).toBe(0)
    expect([1, -1, 0.5].map(deepFreeze)).toEqual([1, -1, 0.5])
  })

  it('has the texts, truths and nulls of what was given, and what it holds nothing of', () => {
    const given = { a: 'a', b: true, c: null, d: undefined }
    expect(deepFreeze(given)).toStrictEqual(given)
  })

  it('has no fields named by symbols, and none that were inherited', () => {
    const given = Object.assign(Object.create({ inherited: [1] }) as object, { [Symbol('s')]: 1, own: 1 })
    const frozen = deepFreeze(given)
    expect(Object.getOwnPropertySymbols(frozen)).toEqual([])
    expect({ ...frozen }).toStrictEqual({ own: 1 })
    expect('inherited' in frozen).toBe(false)
  })

  it('is copied again, unless it was made to be handed on', () => {
    const [once, again] = [deepFreezeOnce({ a: [1] }), deepFreeze({ a: [1] })]
    expect(deepFreeze(once)).toBe(once)
    expect(deepFreeze({ once }).once).toBe(once)
    expect(deepFreeze(again)).not.toBe(again)
    expect([once, again].map(isFrozenOnce)).toEqual([true, false])
  })
})
