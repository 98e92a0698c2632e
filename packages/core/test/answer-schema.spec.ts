import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { createRuntime, defineAgent, memoryLedger, type OutputSchema } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { manualClock, scriptedModel, waitUntilSettled } from '@tallystick/testkit'
import { checkedRun, ofType, recorded } from './stage.ts'

const text = { type: 'string' } as const

async function answering<Output>(output: OutputSchema<Output>, ...texts: readonly string[]) {
  const clock = manualClock()
  const ledger = memoryLedger()
  const model = scriptedModel(texts.map((said) => ({ text: said })))
  const agent = defineAgent<Output>({ name: 'lister', instructions: 'List.', model, output })
  const run = createRuntime({ ledger, agents: [agent], host: { clock } }).run(agent, 'What is in stock?')
  const result = await waitUntilSettled(clock, run.result)
  const events = checkedRun(await recorded(ledger, run.id))
  return { result, events, asked: model.requests.map(({ outputSchema }) => outputSchema), model }
}

describe('an answer that is not an object', () => {
  it.each<[string, OutputSchema, string, unknown]>([
    ['a list', z.array(z.string()), '["a","b"]', ['a', 'b']],
    [
      'one of several objects',
      z.discriminatedUnion('kind', [
        z.object({ kind: z.literal('in'), count: z.number() }),
        z.object({ kind: z.literal('out') }),
      ]),
      '{"kind":"in","count":2}',
      { kind: 'in', count: 2 },
    ],
    ['a number', z.number().min(0), '7', 7],
    ['an object or null', z.object({ a: z.string() }).nullable(), 'null', null],
    ['one of some words', { enum: ['yes', 'no'] }, '"yes"', 'yes'],
  ])(
    'is asked for as the one field of an object, and comes out of it: %s',
    async (_, output, json, value) => {
      const { result, asked, events } = await answering(output, `{"answer":${json}}`)
      expect(asked[0]).toMatchObject({ type: 'object', required: ['answer'], additionalProperties: false })
      expect(asked[0]).not.toHaveProperty('anyOf')
      expect(result).toMatchObject({ reason: 'answered', turns: 1 })
      expect(result.output).toEqual(value)
      expect(JSON.parse(result.text)).toEqual(value)
      // The definition records that the answer is wrapped, the check records the value.
      expect(ofType(events, 'run_started')[0]?.definition.output).toMatchObject({ wrapped: true })
      expect(ofType(events, 'output_checked')).toMatchObject([{ valid: true, output: value }])
    },
  )

  it('counts where the model left the object out', async () => {
    const { result } = await answering(z.array(z.string()), '["a"]')
    expect(result).toMatchObject({ reason: 'answered', output: ['a'] })
    const field = z.union([z.object({ answer: z.string() }), z.object({ other: z.string() })])
    const bare = await answering(field, '{"answer":"its own field"}')
    expect(bare.result.output).toEqual({ answer: 'its own field' })
  })

  it('may refer to itself: its references lead to its new place', async () => {
    const tree: JsonObject = {
      type: 'array',
      items: { type: 'object', properties: { name: text, below: { $ref: '#' } }, required: ['name'] },
      $defs: { answer: text },
    }
    const { asked } = await answering(tree, '{"answer":[]}')
    expect(asked[0]).toMatchObject({
      properties: { answer: { $ref: '#/$defs/answer_' } },
      $defs: { answer: text, answer_: { items: { properties: { below: { $ref: '#/$defs/answer_' } } } } },
    })
    const { $defs, ...rest } = tree
    const plain = { ...rest, items: { $ref: '#/$defs/part' }, $defs: { ...($defs as object), part: text } }
    expect((await answering(plain as JsonObject, '{"answer":[]}')).asked[0]).toEqual({
      type: 'object',
      properties: { answer: { type: 'array', items: { $ref: '#/$defs/part' } } },
      ...{ required: ['answer'], additionalProperties: false, $defs: { answer: text, part: text } },
    })
  })
})

it('an answer that is an object is asked for as it is, one with fields of any name as well', async () => {
  const plain = await answering(z.object({ a: z.string() }), '{"a":"x"}')
  expect(plain.asked[0]).toMatchObject({ properties: { a: text } })
  expect(ofType(plain.events, 'run_started')[0]?.definition.output).not.toHaveProperty('wrapped')
  const record = await answering(z.record(z.string(), z.number()), '{"a":1,"b":2}')
  expect(record.asked[0]).toMatchObject({ type: 'object', additionalProperties: { type: 'number' } })
  expect(record.result.output).toEqual({ a: 1, b: 2 })
})

it('null stands for a field that was left out, where the schema knows no null for it', async () => {
  const output = z.object({
    name: z.string(),
    note: z.string().optional(),
    size: z.number().nullable().optional(),
    parts: z.array(z.object({ id: z.string().optional() })),
  })
  const { result, events } = await answering(
    output,
    '{"name":"a","note":null,"size":null,"parts":[{"id":null},{"id":"x"}]}',
  )
  const read = { name: 'a', size: null, parts: [{}, { id: 'x' }] }
  expect(result.output).toEqual(read)
  expect(ofType(events, 'output_checked')).toMatchObject([{ valid: true, output: read }])
  expect(Object.keys(result.output ?? {})).not.toContain('note')
  const list = await answering(z.array(z.object({ id: z.string().optional() })), '{"answer":[{"id":null}]}')
  expect(list.result.output).toEqual([{}])
})

it('a model that is asked to write an answer again reads the schema, and what does not fit', async () => {
  const { result, model } = await answering(
    z.array(z.object({ id: z.string() })),
    'I have no idea.',
    '{"answer":[{"id":7}]}',
    '{"answer":[{"id":"7"}]}',
  )
  expect(result).toMatchObject({ reason: 'answered', output: [{ id: '7' }], turns: 3 })
  const reported = model.requests
    .at(-1)
    ?.messages.filter(({ role }) => role === 'user')
    .slice(1)
  const schema = /"answer":\{"items":\{.*"id":\{"type":"string"\}/
  expect(reported?.map((message) => JSON.stringify(message).replaceAll('\\', ''))).toEqual([
    expect.stringMatching(/it is not JSON.*This is the schema/s),
    expect.stringMatching(/in the field answer: 0\.id: .*This is the schema/s),
  ])
  for (const message of reported ?? []) {
    expect(message.role === 'user' && message.parts[0]?.type === 'text' && message.parts[0].text).toMatch(
      schema,
    )
  }
})
