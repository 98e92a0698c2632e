import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, defineAgent, memoryLedger, ConfigurationError } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { scriptedModel } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import {
  approvalRules,
  checkExamples,
  decideByRules,
  type ApprovalRule,
  type ApprovalRules,
  type InputCondition,
  type RuledCall,
  readApprovalRules,
} from '@tallystick/tools/policy'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { temporaryFolder } from '../../../scripts/testing/temporary-folder.ts'

const rulesOf = (...rules: readonly ApprovalRule[]): ApprovalRules => ({ version: 1, rules })

/** What becomes of a call of `pay` with an input: of one rule with a condition that allows, or denies. */
function decided(
  decision: 'allow' | 'deny',
  input: { readonly [path: string]: InputCondition },
  given: RuledCall['input'],
): string {
  return decideByRules(rulesOf({ decision, input }), { tool: 'pay', ...(given && { input: given }) }).decision
}

/** Whether a condition holds, does not, or is undecided: told by what allows and denies make of it. */
function finding(condition: InputCondition, given: unknown): string {
  const input = given === undefined ? {} : { x: given }
  const [allows, denies] = [
    decided('allow', { x: condition }, input) === 'allow',
    decided('deny', { x: condition }, input) === 'deny',
  ]
  return allows ? 'yes' : denies ? 'undecided' : 'no'
}

describe('the rule that decides', () => {
  const rules = rulesOf(
    { tool: 'look', decision: 'allow' },
    { tool: ['transfer', 'refund_*'], input: { amount: { atMost: 100 } }, decision: 'allow' },
    { tool: 'delete_*', decision: 'deny', name: 'nothing is deleted', why: 'Nothing is deleted from here.' },
    { effect: 'read', agent: 'clerk*', decision: 'allow' },
  )

  it.each<[RuledCall, string, number | undefined]>([
    [{ tool: 'look' }, 'allow', 1],
    [{ tool: 'look_up' }, 'ask', undefined],
    [{ tool: 'transfer', input: { amount: 100 } }, 'allow', 2],
    [{ tool: 'transfer', input: { amount: 101 } }, 'ask', undefined],
    [{ tool: 'transfer', input: { amount: '100' } }, 'ask', undefined],
    [{ tool: 'transfer' }, 'ask', undefined],
    [{ tool: 'refund_order', input: { amount: 5 } }, 'allow', 2],
    [{ tool: 'delete_all' }, 'deny', 3],
    [{ tool: 'find', effect: 'read', agent: 'clerk 2' }, 'allow', 4],
    [{ tool: 'find', effect: 'write', agent: 'clerk' }, 'ask', undefined],
    [{ tool: 'find', effect: 'read', agent: 'boss' }, 'ask', undefined],
    // What is not known allows nothing.
    [{ tool: 'find', effect: 'read' }, 'ask', undefined],
    [{ tool: 'find', agent: 'clerk' }, 'ask', undefined],
  ])('of %j is the first that fits', (call, decision, rule) => {
    expect(decideByRules(rules, call)).toMatchObject({ decision, ...(rule !== undefined && { rule }) })
    expect(decideByRules(rules, call).rule).toBe(rule)
  })

  it('is named with its reason', () => {
    expect(decideByRules(rules, { tool: 'delete_all' }).reason).toBe(
      'Nothing is deleted from here. (rule 3, nothing is deleted)',
    )
    expect(decideByRules(rulesOf({ decision: 'ask' }), { tool: 'x' }).reason).toBe(
      'A person decides. (rule 1)',
    )
    expect(decideByRules(rulesOf({ decision: 'deny' }), { tool: 'x' }).reason).toMatch(
      /^The call is not allowed/,
    )
    expect(decideByRules(rulesOf({ decision: 'allow' }), { tool: 'x' }).reason).toMatch(
      /^The call is allowed/,
    )
    const unsure = rulesOf({ decision: 'deny', input: { amount: { above: 1 } } })
    expect(decideByRules(unsure, { tool: 'x' }).reason).toContain('missing or of another type')
  })

  it('is what is decided otherwise where no rule fits', () => {
    expect(decideByRules(rulesOf(), { tool: 'x' }).decision).toBe('ask')
    expect(decideByRules({ ...rulesOf(), otherwise: 'deny' }, { tool: 'x' })).toEqual({
      decision: 'deny',
      reason: 'No rule fits this call, and deny is decided otherwise.',
    })
  })
})

describe('a condition on a field', () => {
  it.each<[InputCondition, unknown, 'yes' | 'no' | 'undecided']>([
    ['eu', 'eu', 'yes'],
    ['eu', 'us', 'no'],
    [5, '5', 'no'],
    [null, null, 'yes'],
    [null, undefined, 'undecided'],
    [{ is: true }, true, 'yes'],
    [{ is: true }, 'true', 'no'],
    [{ oneOf: ['a', 1] }, 1, 'yes'],
    [{ oneOf: ['a', 1] }, 'b', 'no'],
    [{ like: 'a*c' }, 'abc', 'yes'],
    [{ like: ['x', '*c'] }, 'abc', 'yes'],
    [{ like: 'a*c' }, 'abcd', 'no'],
    [{ like: '*' }, 5, 'undecided'],
    [{ above: 5 }, 5, 'no'],
    [{ above: 5 }, 6, 'yes'],
    [{ above: 5 }, '6', 'undecided'],
    [{ atLeast: 5 }, 5, 'yes'],
    [{ atLeast: 5 }, 4.9, 'no'],
    [{ below: 5 }, 5, 'no'],
    [{ below: 5 }, 4, 'yes'],
    [{ atMost: 5 }, 5, 'yes'],
    [{ atMost: 5 }, 5.1, 'no'],
    [{ atLeast: 1, atMost: 5 }, 3, 'yes'],
    [{ atLeast: 1, atMost: 5 }, 6, 'no'],
    [{ present: true }, undefined, 'no'],
    [{ present: true }, null, 'yes'],
    [{ present: false }, undefined, 'yes'],
    [{ present: false }, 0, 'no'],
    [{ not: 'eu' }, 'us', 'yes'],
    [{ not: 'eu' }, 'eu', 'no'],
    [{ not: 'eu' }, undefined, 'undecided'],
    [{ not: { present: true } }, undefined, 'yes'],
    [{ not: { above: 5 } }, 'x', 'undecided'],
    [{ some: { is: 1 } }, [2, 1], 'yes'],
    [{ some: { is: 1 } }, [2], 'no'],
    [{ some: { above: 1 } }, ['x', 2], 'yes'],
    [{ some: { above: 1 } }, ['x', 1], 'undecided'],
    [{ some: { is: 1 } }, [], 'no'],
    [{ some: { is: 1 } }, 1, 'undecided'],
    [{ every: { above: 0 } }, [1, 2], 'yes'],
    [{ every: { above: 0 } }, [1, 0], 'no'],
    [{ every: { above: 0 } }, [1, 'x'], 'undecided'],
    [{ every: { above: 0 } }, [], 'yes'],
    [{ every: { above: 0 } }, {}, 'undecided'],
  ])('%j is, for %j, known: %s', (condition, value, known) => {
    expect(finding(condition, value)).toBe(known)
  })

  it('finds fields within fields and items of lists, and nothing that an object inherits', () => {
    const input = { to: { country: 'eu' }, lines: [{ price: 5 }, { price: 7 }] }
    expect(decided('allow', { 'to.country': 'eu', 'lines.1.price': 7, 'lines.length': 2 }, input)).toBe(
      'allow',
    )
    expect(decided('allow', { 'lines.2.price': { present: false } }, input)).toBe('allow')
    expect(decided('allow', { 'to.country': { present: false } }, { to: null })).toBe('allow')
    expect(finding({ is: undefined, above: 5 }, 6)).toBe('yes')
    for (const path of ['constructor', '__proto__', 'to.toString', 'to.country.length'])
      expect([path, decided('allow', { [path]: { present: true } }, input)]).toEqual([path, 'ask'])
  })

  it('takes time in proportion to the text, whatever the pattern', () => {
    const [pattern, text] = ['a*'.repeat(90) + 'b', 'a'.repeat(200_000)]
    expect(finding({ like: pattern }, text)).toBe('no')
    expect(finding({ like: pattern }, `${text}b`)).toBe('yes')
    expect(finding({ like: 'aba*aba' }, 'aba')).toBe('no')
    expect(finding({ like: 'aba*aba' }, 'abaaba')).toBe('yes')
    expect(finding({ like: '**' }, '')).toBe('yes')
    expect(finding({ like: 'a*b*c' }, 'abbc')).toBe('yes')
    expect(finding({ like: 'a*b*c' }, 'axxc')).toBe('no')
    expect(finding({ like: 'a*bc*bc' }, 'abcbc')).toBe('yes')
    expect(finding({ like: '*ab*ab*' }, 'ab')).toBe('no')
    expect(finding({ like: '*ab*cd*' }, 'cdab')).toBe('no')
    expect(finding({ like: '*b*b' }, 'bxb')).toBe('yes')
    expect(finding({ like: '*bb*b' }, 'bbb')).toBe('yes')
    expect(finding({ like: '*bb*bb' }, 'bbb')).toBe('no')
  })
})

describe('rules that are wrong', () => {
  it.each<[unknown, string]>([
    [undefined, 'what it was given is missing: give an object'],
    [{ rules: [] }, 'version is missing: give 1'],
    [{ version: 2, rules: [] }, 'version is 2; expected 1'],
    [{ version: 1 }, 'rules is missing: give a list'],
    [{ version: 1, rules: [{}] }, "rules[0].decision is missing; use one of 'allow', 'ask', 'deny'"],
    [{ version: 1, rules: [{ decision: 'alow' }] }, "Did you mean 'allow'?"],
    [{ version: 1, rules: [{ action: 'ask' }] }, 'Did you mean rules[0].decision?'],
    [{ version: 1, rules: [{ tool: '', decision: 'ask' }] }, 'rules[0].tool is an empty text'],
    [{ version: 1, rules: [{ tool: [], decision: 'ask' }] }, 'rules[0].tool is a list'],
    [{ version: 1, rules: [{ tool: 'x'.repeat(201), decision: 'ask' }] }, 'rules[0].tool is a text'],
    [{ version: 1, rules: [{ effect: 'delete', decision: 'ask' }] }, "use one of 'read', 'write'"],
    [{ version: 1, rules: [{ input: { a: {} }, decision: 'ask' }] }, 'rules[0].input.a states nothing'],
    [
      { version: 1, rules: [{ input: { a: { min: 1 } }, decision: 'ask' }] },
      'Did you mean rules[0].input.a.atLeast?',
    ],
    [{ version: 1, rules: [{ input: { a: { above: NaN } }, decision: 'ask' }] }, 'expected a finite number'],
    [{ version: 1, rules: [{ input: { 'a..b': 1 }, decision: 'ask' }] }, "holds the path 'a..b'"],
    [
      { version: 1, rules: Array.from({ length: 1_001 }, () => ({ decision: 'ask' })) },
      'holds more than 1000 rules',
    ],
    [{ version: 1, rules: [], otherwise: 'run' }, 'otherwise is'],
    [
      { version: 1, rules: [], examples: [{ call: {}, decision: 'ask' }] },
      'examples[0].call.tool is missing',
    ],
  ])('%j are refused with the place and what is expected there', (given, message) => {
    expect(() => approvalRules(given as ApprovalRules)).toThrow(message)
  })

  it('are refused where conditions lie too deep within each other', () => {
    const within = (depth: number): InputCondition => (depth === 0 ? { is: 1 } : { not: within(depth - 1) })
    const given = (depth: number) => rulesOf({ decision: 'ask', input: { a: within(depth) } })
    expect(() => approvalRules(given(9))).not.toThrow()
    expect(() => approvalRules(given(10))).toThrow(/more than 10 deep/)
  })

  it.each<[string, unknown]>([
    ['a', 'eu'],
    ['a.b.0', 5],
    ['a', true],
    ['a', null],
    ['a', { is: 'x', oneOf: ['x', 1, false, null], present: true }],
    ['a', { like: 'x'.repeat(200) }],
    ['a', { like: ['x', '*'] }],
    ['a', { like: ['x'] }],
    ['a', { above: 1, atLeast: 1.5, below: 2, atMost: 2 }],
    ['a', { not: 1, some: { is: 1 }, every: { like: '*' } }],
  ])('are not those with a condition on %s: %j', (path, condition) => {
    expect(() =>
      approvalRules(rulesOf({ decision: 'ask', input: { [path]: condition as never } })),
    ).not.toThrow()
  })

  it.each<[string, unknown, string]>([
    ['a', Infinity, 'rules[0].input.a'],
    ['a', [1], 'rules[0].input.a'],
    [
      'a',
      { is: {} },
      'rules[0].input.a.is is an object; expected a text, a finite number, true, false or null',
    ],
    ['a', { oneOf: [[]] }, 'rules[0].input.a.oneOf[0]'],
    ['a', { like: ['x', ''] }, 'rules[0].input.a.like is a list'],
    ['a', { like: ['x', 1] }, 'rules[0].input.a.like is a list'],
    ['a', { like: [] }, 'rules[0].input.a.like is a list'],
    ['a', { present: 1 }, 'rules[0].input.a.present'],
    ['a', { not: { is: {} } }, 'rules[0].input.a.not.is'],
    ['a', { is: undefined }, 'rules[0].input.a states nothing'],
    ['', 1, "rules[0].input holds the path ''; expected names with dots between them"],
    ['.a', 1, "holds the path '.a'"],
    [`${'a'.repeat(40)}..b`, 1, `holds the path '${'a'.repeat(40)}'`],
    ...Object.entries({
      ...{ equals: 'is', in: 'oneOf', matches: 'like', glob: 'like', exists: 'present' },
      ...{ min: 'atLeast', max: 'atMost' },
    }).map(([other, meant]): [string, unknown, string] => [
      ...(['a', { [other]: 1 }, `Did you mean rules[0].input.a.${meant}?`] as const),
    ]),
  ])('are those with a condition on %s: %j', (path, condition, message) => {
    expect(() => approvalRules(rulesOf({ decision: 'ask', input: { [path]: condition as never } }))).toThrow(
      message,
    )
  })

  it.each<[object, string]>([
    [{ tools: 'a' }, 'rules[0].tool'],
    [{ verdict: 'ask' }, 'rules[0].decision'],
    [{ action: 'ask' }, 'rules[0].decision'],
    [{ reason: 'a' }, 'rules[0].why'],
    [{ message: 'a' }, 'rules[0].why'],
    [{ args: {} }, 'rules[0].input'],
  ])('name what %j is called here', (more, meant) => {
    expect(() => approvalRules(rulesOf({ decision: 'ask', ...more }))).toThrow(`Did you mean ${meant}?`)
  })

  it.each([
    ['default', 'otherwise'],
    ['fallback', 'otherwise'],
    ['tests', 'examples'],
  ])('name what %s is called for all of them', (other, meant) => {
    expect(() => approvalRules({ ...rulesOf(), [other]: 'ask' })).toThrow(`Did you mean ${meant}?`)
  })

  it('may be a thousand', () => {
    const rules = Array.from({ length: 1_000 }, (): ApprovalRule => ({ decision: 'ask' }))
    expect(() => approvalRules(rulesOf(...rules))).not.toThrow()
  })
})

describe('an agent with rules', () => {
  const amount = z.object({ amount: z.number() })
  const pay = defineTool({
    ...{ name: 'pay', description: 'Pays.', input: amount, effect: 'write', approval: 'never' },
    execute: () => 'Paid.',
  })
  const rules: ApprovalRules = {
    version: 1,
    rules: [
      { tool: 'pay', input: { amount: { atMost: 10 } }, decision: 'allow' },
      { tool: 'pay', input: { amount: { atMost: 100 } }, decision: 'ask', why: 'Above 10 a person decides.' },
    ],
    otherwise: 'deny',
  }
  const play = async (input: JsonObject) => {
    const model = scriptedModel([{ toolCalls: [{ name: 'pay', input }] }, { text: 'Done.' }])
    const approval = approvalRules(rules)
    const agent = defineAgent({ name: 'payer', instructions: 'Pay.', model, tools: [pay], approval })
    const ledger = memoryLedger()
    const result = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Pay.').result
    const events = await Array.fromAsync(ledger.read(result.runId))
    return { result, outcome: events.find((event) => event.type === 'tool_result') }
  }

  it('runs, asks and denies as they say, and the reason is on record', async () => {
    expect((await play({ amount: 10 })).outcome).toMatchObject({ outcome: 'success' })
    const asked = await play({ amount: 11 })
    expect(asked.result.pendingApprovals).toMatchObject([{ reason: 'Above 10 a person decides. (rule 2)' }])
    expect((await play({ amount: 101 })).outcome).toMatchObject({
      outcome: 'denied',
      content: [{ text: expect.stringContaining('Nothing was run.') as string }],
    })
  })

  it('keeps the rules that it was given, whatever the caller changes later', async () => {
    const own = structuredClone(rules) as { rules: ApprovalRule[]; version: 1; otherwise: 'deny' }
    const policy = approvalRules(own)
    own.rules.length = 0
    const call = { name: 'pay', input: { amount: 1 }, effect: 'write', agent: 'a' }
    expect(await policy(call as never)).toBe('run')
  })
})

describe('examples of rules', () => {
  it('hold or not, each with what was decided', () => {
    const rules: ApprovalRules = {
      ...rulesOf({ tool: 'look', decision: 'allow' }),
      examples: [
        { call: { tool: 'look' }, decision: 'allow' },
        { call: { tool: 'pay', input: { amount: 1 } }, decision: 'deny' },
      ],
    }
    expect(
      checkExamples(rules).map(({ number, holds, decided: { decision } }) => [number, holds, decision]),
    ).toEqual([
      [1, true, 'allow'],
      [2, false, 'ask'],
    ])
    expect(checkExamples(rulesOf())).toEqual([])
  })
})

function fileWith(text: string | Uint8Array): string {
  const folder = temporaryFolder()
  const path = join(folder, 'rules.json')
  writeFileSync(path, text)
  return path
}

const rules = { version: 1, rules: [{ tool: 'look', decision: 'allow' }] }

describe('a file of approval rules', () => {
  it('may have comments, and commas at the ends of lists', () => {
    const text =
      '// Who may what\n{ "version": 1, "rules": [{ "tool": "look", "decision": "allow" }, /* last */ ], }'
    expect(readApprovalRules(fileWith(text))).toEqual(rules)
  })

  it('is read, also where an editor put a byte order mark in front', () => {
    expect(readApprovalRules(fileWith(JSON.stringify(rules)))).toEqual(rules)
    expect(readApprovalRules(fileWith(`\uFEFF${JSON.stringify(rules)}`))).toEqual(rules)
  })

  it.each([
    [
      '{\n"version": 1,\n  ]',
      /rules\.json cannot be read as approval rules: It is not JSON at line 3, column 3 \(\w+\)\./,
    ],
    ['['.repeat(100_000), /It is nested too deeply\. Name a JSON file/],
    ['', /It is not JSON at line 1, column 1/],
    [
      '{"version":1,"rules":[{"decision":"allow","input":{"__proto__":{}}}]}',
      /rules\[0\]\.input\.__proto__ states nothing/,
    ],
    ['[]', /The approval rules of .*rules\.json: what it was given is a list; expected an object/],
    ['{"version":1,"rules":[{"decision":"maybe"}]}', /rules\.json: rules\[0\]\.decision is 'maybe'/],
    [' '.repeat(1024 * 1024 + 1), /it has 1048577 bytes/],
  ])('that holds none is refused by its name: %#', (text, message) => {
    const path = fileWith(text)
    expect(() => readApprovalRules(path)).toThrow(ConfigurationError)
    expect(() => readApprovalRules(path)).toThrow(message)
  })

  it('may have a mebibyte', () => {
    const text = JSON.stringify(rules)
    expect(readApprovalRules(fileWith(text.padEnd(1024 * 1024)))).toEqual(rules)
  })

  it('that is missing, or a folder, is refused by its name', () => {
    expect(() => readApprovalRules('/nowhere/rules.json')).toThrow(
      /\/nowhere\/rules\.json cannot be read.*ENOENT/,
    )
    expect(() => readApprovalRules(tmpdir())).toThrow(/cannot be read as approval rules.*EISDIR/)
  })
})
