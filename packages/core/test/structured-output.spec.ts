import { describe, expect, expectTypeOf, it } from 'vitest'
import * as z from 'zod'
import { createRuntime, defineAgent, memoryLedger, type AgentOptions, type Ledger } from '@tallystick/core'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedStep,
} from '@tallystick/testkit'
import { checkedRun, ofType, recorded } from './stage.ts'

const weather = z.object({
  city: z.string(),
  degrees: z.union([z.number(), z.string().transform(Number)]),
  at: z
    .string()
    .transform((text) => new Date(text))
    .optional(),
})

async function play<Output>(
  steps: readonly ScriptedStep[],
  options: Pick<AgentOptions<Output>, 'output'> & Partial<AgentOptions<Output>>,
  ledger: Ledger = memoryLedger(),
) {
  const clock = manualClock()
  const model = scriptedModel(steps)
  const agent = defineAgent<Output>({ name: 'reporter', instructions: 'Report.', model, ...options })
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock } })
  const run = runtime.run(agent, 'How warm is it in Seoul?')
  const result = await waitUntilSettled(clock, run.result)
  return { result, model, runtime, clock, events: checkedRun(await recorded(ledger, run.id)) }
}

describe('structured output', () => {
  it('is asked for by its JSON schema, and the answer is read by the schema', async () => {
    const { result, model, events } = await play(
      [{ text: '{"city":"Seoul","degrees":"21","at":"2026-01-01"}' }],
      { output: weather },
    )
    expectTypeOf(result.output).toEqualTypeOf<
      { city: string; degrees: number; at?: Date | undefined } | undefined
    >()
    expect(result.output).toEqual({ city: 'Seoul', degrees: 21, at: new Date('2026-01-01') })
    expect(result).toMatchObject({ reason: 'answered', turns: 1 })
    expect(model.requests[0]?.outputSchema).toMatchObject({ type: 'object', required: ['city', 'degrees'] })
    // On record is what the model wrote.
    expect(ofType(events, 'output_checked')).toMatchObject([
      { valid: true, output: { city: 'Seoul', degrees: '21', at: '2026-01-01' } },
    ])
  })

  it('that does not fit goes back to the model with what is wrong, a bounded number of times', async () => {
    const { result, model, events } = await play(
      [{ text: 'It is warm.' }, { text: '{"city":"Seoul"}' }, { text: '{"city":"Seoul","degrees":21}' }],
      { output: weather },
    )
    expect(result).toMatchObject({ reason: 'answered', output: { city: 'Seoul', degrees: 21 }, turns: 3 })
    const reported = model.requests[2]?.messages.filter(({ role }) => role === 'user').slice(1)
    expect(JSON.stringify(reported?.[0])).toContain('it is not JSON')
    expect(JSON.stringify(reported?.[1])).toContain('degrees: Invalid input')
    expect(ofType(events, 'output_checked').map(({ valid }) => valid)).toEqual([false, false, true])
  })

  it('that never fits ends the run as output_invalid, and the texts are kept', async () => {
    const { result } = await play([{ text: 'No.' }, { text: 'No!' }, { text: 'NO' }], { output: weather })
    expect(result).toMatchObject({ reason: 'output_invalid', text: 'NO', detail: 'it is not JSON' })
    expect(result.output).toBeUndefined()
    const strict = await play([{ text: 'No.' }], { output: weather, maxOutputRepairs: 0 })
    expect(strict.result).toMatchObject({ reason: 'output_invalid', turns: 1 })
  })

  it('goes back to the model where the check of its schema throws', async () => {
    const standard = weather['~standard']
    let checks = 0
    const validate: typeof standard.validate = (value) => {
      if (checks++ === 0) throw new TypeError('no atlas')
      return standard.validate(value)
    }
    const broken = { '~standard': { ...standard, validate } }
    const text = '{"city":"Seoul","degrees":21}'
    const { result, events } = await play([{ text }, { text }], { output: broken })
    expect(result).toMatchObject({ reason: 'answered', output: { city: 'Seoul', degrees: 21 }, turns: 2 })
    expect(ofType(events, 'output_checked')).toMatchObject([
      {
        valid: false,
        error: expect.stringMatching(
          /^the check of the schema failed: validate of the output of agent \w+ threw: no atlas\./,
        ),
      },
      { valid: true },
    ])
  })

  it('is read by a schema that changes what it reads in place, and stays on record as the model wrote it', async () => {
    const changing = {
      '~standard': {
        ...weather['~standard'],
        validate(value: unknown) {
          const read = value as { degrees: unknown }
          read.degrees = Number(read.degrees)
          return { value: read }
        },
      },
    }
    const { result, events } = await play([{ text: '{"city":"Seoul","degrees":"21"}' }], { output: changing })
    expect(result.output).toEqual({ city: 'Seoul', degrees: 21 })
    expect(ofType(events, 'output_checked')).toMatchObject([{ valid: true, output: { degrees: '21' } }])
  })

  it('is found in the one fenced block that a model puts around it', async () => {
    const { result } = await play([{ text: 'Here:\n```json\n{"city":"Busan","degrees":3}\n```' }], {
      output: weather,
    })
    expect(result.output).toEqual({ city: 'Busan', degrees: 3 })
  })

  it('is found between the first fence and the last, whatever the JSON itself holds', async () => {
    const code = JSON.stringify({ city: '```js\n1\n```', degrees: 3 })
    const { result } = await play([{ text: `Use \`this\`:\n\`\`\`JSON\n${code}\n\`\`\`\nDone.` }], {
      output: weather,
    })
    expect(result.output).toEqual({ city: '```js\n1\n```', degrees: 3 })
  })

  it('is not looked for in a reply that asks for tools, nor repaired past a limit', async () => {
    const limited = await play(
      [{ toolCalls: [{ name: 'nothing', input: {} }], text: 'Looking.' }, { text: 'Not JSON.' }],
      { output: weather, limits: { maxTurns: 2 }, tools: [testTool({ name: 'look' })] },
    )
    expect(limited.result).toMatchObject({ reason: 'turn_limit', turns: 2 })
    expect(limited.result.output).toBeUndefined()
    expect(ofType(limited.events, 'output_checked')).toMatchObject([{ turn: 2, valid: false }])
  })

  it('is there again for a process that resumes the run, in the types of the schema', async () => {
    const ledger = memoryLedger()
    const { result, clock, runtime } = await play(
      [{ text: '{"city":"Seoul","degrees":"21"}' }],
      { output: weather },
      ledger,
    )
    const resumed = await waitUntilSettled(clock, runtime.resume(result.runId).result)
    expect(resumed.output).toEqual({ city: 'Seoul', degrees: 21 })
  })

  it('takes a plain JSON Schema too, and refuses what is not a schema', async () => {
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } as const
    const { result } = await play([{ text: '{"n":1.5}' }, { text: '{"n":2}' }], { output: schema })
    expect(result).toMatchObject({ output: { n: 2 }, turns: 2 })
    const model = scriptedModel([])
    expect(() => defineAgent({ name: 'x', instructions: '', model, output: 7 as never })).toThrow(
      /output is 7; expected a schema/,
    )
    expect(() => defineAgent({ name: 'x', instructions: '', model, output: z.date() as never })).toThrow(
      /cannot be described to a model/,
    )
    const plain = {
      '~standard': { version: 1, vendor: 'valibot', validate: (value: unknown) => ({ value }) },
    }
    expect(() => defineAgent({ name: 'x', instructions: '', model, output: plain as never })).toThrow(
      /gives no JSON Schema.*toStandardJsonSchema/,
    )
  })
})
