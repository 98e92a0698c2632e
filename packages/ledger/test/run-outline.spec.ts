import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { OutlineFold, type RunOutline } from '../src/projection/run-outline.ts'

const runId = sampleRunId(1)
const facts = sampleFacts(runId)
const callOf = (ordinal: number) => `call_${runId.replaceAll('-', '')}_1_1_${ordinal}`

type Step = readonly [type: keyof typeof facts, more?: object]

/** The outline of these facts, each with its own changes. */
function outlined(...changed: readonly Step[]): RunOutline {
  const bodies = changed.map(([type, more = {}]) => ({ ...facts[type], ...more }))
  const fold = new OutlineFold()
  for (const event of stampFacts(runId, bodies)) fold.add(event)
  return fold.outline
}

const asked = (ordinal: number, more: object = {}) =>
  ['tool_request_ready', { toolCallId: callOf(ordinal), name: 'look', input: {}, ...more }] as const
const said = (ordinal: number, text: string, more: object = {}) => {
  const content = [{ type: 'text', text }]
  return ['tool_result', { toolCallId: callOf(ordinal), outcome: 'success', content, ...more }] as const
}

describe('the outline of a run', () => {
  it('names who had the conversation, and the runs that do the work of its calls', () => {
    const child = sampleRunId(7)
    const { agents, children } = outlined(
      ['run_started', { agent: 'front' }],
      ['agent_handed_off', { to: 'expert' }],
      ['tool_started', { child }],
      ['tool_started', { child, attempt: 2 }],
      ['tool_started', { child: undefined }],
    )
    expect([agents, children]).toEqual([['front', 'expert'], [child]])
  })

  it('counts requests and results, and knows the request that has none', () => {
    const outline = outlined(asked(1), asked(2), said(1, 'a'))
    expect([outline.requests, outline.results]).toEqual([2, 1])
    expect(outline.open).toEqual([{ toolCallId: callOf(2), name: 'look', seq: 2 }])
    expect(outlined(asked(1), said(1, 'a'), said(1, 'a'))).toMatchObject({
      results: 2,
      tools: [{ endings: [{ ending: 'success', count: 1 }] }],
    })
  })

  it('says tool by tool how calls ended, and a success that said nothing is empty', () => {
    const { tools } = outlined(
      ...[asked(1), said(1, ' []\n'), asked(2, { name: 'pay' }), said(2, '[]', { outcome: 'failed' })],
      ...[asked(3), said(3, 'x'), asked(4), said(4, ''), asked(5)],
      ...[asked(6), said(6, '', { content: [{ type: 'image', mediaType: 'image/png', data: '' }] })],
    )
    const ended = tools.map(({ name, calls, endings }) => ({ name, calls, endings }))
    expect(ended).toEqual([
      {
        ...{ name: 'look', calls: 5 },
        endings: [
          { ending: 'empty', count: 2 },
          { ending: 'success', count: 2 },
        ],
      },
      { name: 'pay', calls: 1, endings: [{ ending: 'failed', count: 1 }] },
    ])
  })

  it('tells the values of each key apart, and that a call had none', () => {
    const { tools } = outlined(
      asked(1, { input: { at: 1, in: 'a' } }),
      asked(2, { input: { at: 2, in: 'a', on: { y: 1, x: 2 } } }),
      asked(3, { input: { at: 1 } }),
      asked(4),
    )
    expect(tools[0]?.inputs).toEqual([
      { key: 'at', values: ['1', '2', null] },
      { key: 'in', values: ['"a"', null] },
      { key: 'on', values: [null, '{"x":2,"y":1}'] },
    ])
  })

  it('stays short: of tools, keys, values and their texts it keeps so many', () => {
    const many = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1)
    const values = outlined(...many(150).map((at) => asked(at, { input: { at } }))).tools[0]?.inputs[0]
      ?.values
    expect([values?.length, values?.[100]]).toEqual([101, '101'])
    const keys = Object.fromEntries(many(60).map((key) => [`k${key}`, 1]))
    expect(outlined(asked(1, { input: keys })).tools[0]?.inputs.length).toBe(50)
    const { tools } = outlined(...many(102).map((tool) => asked(tool, { name: `t${tool}` })), said(102, 'x'))
    expect(tools.length).toBe(101)
    expect(tools[100]).toMatchObject({ name: '…', calls: 2, endings: [{ ending: 'success', count: 1 }] })
    const [long] = outlined(
      asked(1, { name: 'n'.repeat(300), input: { a: 'v'.repeat(300), b: many(90) } }),
    ).tools
    expect(long?.name).toBe('n'.repeat(200))
    expect(long?.inputs.map(({ values: [value] }) => value?.length)).toEqual([120, 120])
  })

  it('holds the last to-do list, by the order in which lists were asked for', () => {
    const list = (...texts: readonly string[]): string =>
      JSON.stringify({ items: texts.map((text) => ({ text, state: 'open' })) })
    const listed = (ordinal: number) => asked(ordinal, { name: 'todo_list' })
    const items = (...steps: readonly Step[]) => outlined(...steps).todo?.items.map(({ text }) => text)
    expect(items(listed(1), said(1, list('a')), listed(2), said(2, list('b', 'c')))).toEqual(['b', 'c'])
    expect(items(listed(1), listed(2), said(2, list('b')), said(1, list('a')))).toEqual(['b'])
    expect(
      items(listed(1), said(1, list('a')), listed(2), said(2, list('b'), { outcome: 'failed' })),
    ).toEqual(['a'])
    expect(items(listed(1), said(1, list('a')), listed(2), said(2, 'none'))).toEqual(['a'])
    expect(items(listed(1), said(1, list('a')), listed(2), said(2, list()))).toEqual([])
    expect(items(asked(1), said(1, list('a')))).toBeUndefined()
  })
})
