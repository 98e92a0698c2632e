import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { anthropic, type AnthropicWarning } from '../src/anthropic.ts'
import { hello, object, sent, tool } from './kit/anthropic-sent.ts'
import { collect, request, textShown } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'

describe('a schema of the answer', () => {
  const outputSchema = object({ sum: { type: 'number', minimum: 0 } })

  it('goes to the vendor, beside the effort, and a warning says what it cannot hold', async () => {
    const { body, warnings, signals } = await sent({ effort: 'low' }, { outputSchema })
    const number = { type: 'number', description: 'Rules: {"minimum":0}' }
    expect(body['output_config']).toEqual({
      effort: 'low',
      format: { type: 'json_schema', schema: { ...object({ sum: number }), additionalProperties: false } },
    })
    expect(warnings).toEqual([
      {
        what: 'output_schema',
        message: 'The schema of the answer: minimum at #/properties/sum was put into the description.',
      },
    ])
    expect(textShown(signals)).toBe('{"sum":5}')
  })

  it.each([
    ['is not an object', { type: 'array', items: { type: 'string' } }, 'its root is not a plain object'],
    ['is open', { type: 'object', additionalProperties: true }, 'properties of any name are allowed at #'],
    [
      'leaves too much out',
      object(Object.fromEntries(Array.from({ length: 25 }, (_, n) => [`p${n}`, { type: 'string' }])), []),
      'the vendor takes 24 properties that may be left out',
    ],
    [
      'has too many choices',
      object(
        Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`p${n}`, { type: ['string', 'null'] }])),
      ),
      'the vendor takes 16 choices of types',
    ],
  ])('that %s goes into the instructions, which a warning says', async (_, schema, why) => {
    const { body, warnings } = await sent({}, { outputSchema: schema })
    expect(body).not.toHaveProperty('output_config')
    expect(body['system'][0].text).toContain(JSON.stringify(schema))
    expect(warnings).toEqual([
      {
        what: 'output_schema',
        message: `The schema of the answer was put into the instructions, and the runtime alone checks the answer: ${why}.`,
      },
    ])
  })

  it('is that of the agent, whose runtime reads the answer', async () => {
    const server = await serve({ pieces: [hello] })
    const model = anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url, effort: 'low' })
    const agent = defineAgent({ name: 'a', instructions: '', model, output: outputSchema })
    const { result } = createRuntime({ ledger: memoryLedger() }).run(agent, 'What is 2 + 3?')
    expect(await result).toMatchObject({ reason: 'answered', output: { sum: 5 } })
    expect(server.arrivals[0]?.body['output_config'].format.schema.required).toEqual(['sum'])
  })

  it('is reported once for a model, however often it is asked, and recorded with each call', async () => {
    const server = await serve({ pieces: [hello] })
    const warnings: AnthropicWarning[] = []
    const model = anthropic('claude-test-1', {
      ...{ apiKey: 'k', baseURL: server.url, onWarning: (warning) => void warnings.push(warning) },
    })
    for (let times = 0; times < 3; times++) {
      const { signals } = await collect(model, { ...request, outputSchema })
      expect(signals[0]).toMatchObject({
        type: 'model_started',
        warnings: warnings.map((one) => one.message),
      })
    }
    expect(server.arrivals).toHaveLength(3)
    expect(warnings).toHaveLength(1)
  })
})

describe('strict tools', () => {
  const city = { city: { type: 'string' } }

  it('are strict where their schema allows it, and otherwise as before, which a warning says', async () => {
    const { body, warnings } = await sent(
      { strictTools: true },
      { tools: [tool('a', object(city, [])), tool('b', { type: 'object', additionalProperties: true })] },
    )
    expect(body['tools']).toEqual([
      {
        ...{ name: 'a', description: 'Does it.', strict: true },
        input_schema: { ...object(city, []), additionalProperties: false },
      },
      {
        ...{ name: 'b', description: 'Does it.' },
        input_schema: { type: 'object', additionalProperties: true },
      },
    ])
    expect(warnings).toEqual([
      {
        what: 'schema',
        message: 'The schema of the tool b: not strict: properties of any name are allowed at #.',
      },
    ])
  })

  it('are twenty at most, from the front', async () => {
    const tools = Array.from({ length: 22 }, (_, n) => tool(`t${n}`, object(city)))
    const { body, warnings } = await sent({ strictTools: true }, { tools })
    expect(body['tools'].map(({ strict }: Loose) => strict === true)).toEqual(tools.map((_, n) => n < 20))
    expect(warnings.map(({ message }) => message)).toEqual([
      'The schema of the tool t20: not strict: the vendor takes 20 strict tools.',
      'The schema of the tool t21: not strict: the vendor takes 20 strict tools.',
    ])
  })

  it('share the vendor’s bounds with the schema of the answer, which comes first', async () => {
    const wide = (length: number) =>
      object(Object.fromEntries(Array.from({ length }, (_, n) => [`p${n}`, { type: 'string' }])), [])
    const { body, warnings } = await sent(
      { strictTools: true },
      { outputSchema: wide(10), tools: [tool('a', wide(15)), tool('b', wide(14)), tool('c', object(city))] },
    )
    expect(body['tools'].map(({ strict }: Loose) => strict)).toEqual([undefined, true, true])
    expect(warnings.map(({ message }) => message)).toEqual([
      'The schema of the tool a: not strict: the vendor takes 24 properties that may be left out.',
    ])
  })
})
