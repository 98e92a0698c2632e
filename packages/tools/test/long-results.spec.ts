import {
  type AgentOptions,
  createRuntime,
  defineAgent,
  defineGuardrail,
  type Ledger,
  memoryLedger,
  type RuntimeEvent,
  joinText,
  type Tool,
} from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import type { EventOf } from '@tallystick/core/vocabulary'
import { checkLaws, scriptedModel, type ScriptedStep } from '@tallystick/testkit'
import { defineTool, image, readResult, type ToolSpecification } from '@tallystick/tools'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { anyText } from '../../../scripts/testing/any-text.ts'

const long = Array.from({ length: 400 }, (_, index) => `line ${index}`).join('\n')

function tool(more: Partial<ToolSpecification<z.ZodObject>>): Tool {
  return defineTool({
    name: 'look',
    description: 'Looks.',
    input: z.object({}),
    effect: 'read',
    execute: () => long,
    ...more,
  })
}

interface Played {
  readonly result: EventOf<'tool_result'>
  readonly results: readonly EventOf<'tool_result'>[]
  /** What the model was shown of each result. */
  readonly read: readonly string[]
  readonly events: readonly RuntimeEvent[]
  readonly ledger: Ledger
}

/** Plays the steps, one call of `look` if not given, and holds the laws against what is on record. */
async function playing(
  tools: readonly Tool[],
  options: Partial<AgentOptions> = {},
  {
    steps,
    ledger = memoryLedger(),
    ...run
  }: { steps?: ScriptedStep[]; ledger?: Ledger; sessionId?: string } = {},
): Promise<Played> {
  const model = scriptedModel(steps ?? [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Seen.' }])
  const agent = defineAgent({ name: 'a', instructions: 'Look.', model, tools, ...options })
  const started = createRuntime({ ledger, agents: [agent] }).run(agent, 'Look.', run)
  expect((await started.result).reason).toBe('answered')
  const events = await Array.fromAsync(ledger.read(started.id))
  auditAll(events)
  expect(checkLaws(events)).toEqual([])
  const results = events.filter((event) => event.type === 'tool_result')
  const messages = model.requests.at(-1)?.messages ?? []
  const read = messages.flatMap((message) =>
    message.role === 'tool' ? message.results.map(({ content }) => joinText(content)) : [],
  )
  return { result: results[0]!, results, read, events, ledger }
}

describe('a long result', () => {
  it('is shown with its beginning, its end and what was left out, and is whole on record', async () => {
    const { result, read } = await playing([tool({ maxResultChars: 200 })])
    expect(result.content).toEqual([{ type: 'text', text: long }])
    expect(read[0]).toBe(
      `${long.slice(0, 150)}\n[${long.length - 200} of ${long.length} characters are left out here, from 150 to ${long.length - 50}. ` +
        `Ask for a smaller part if you need them.]\n${long.slice(-50)}`,
    )
    expect(joinText(result.shown!)).toBe(read[0])
  })

  it('is cut as the agent says, where its tool says nothing, and recorded with both', async () => {
    const whole = tool({ name: 'whole', maxResultChars: 100_000 })
    const steps = ['look', 'whole'].map((name) => ({ toolCalls: [{ name, input: {} }] }))
    const { read, events } = await playing(
      [tool({}), whole],
      { maxResultChars: 120 },
      { steps: [...steps, { text: 'Seen.' }] },
    )
    expect(read[0]!.length).toBeLessThan(300)
    expect(read[1]).toBe(long)
    const [started] = events
    expect(started).toMatchObject({
      definition: {
        policy: {
          maxResultChars: 120,
          tools: [{ name: 'look' }, { name: 'whole', maxResultChars: 100_000 }],
        },
      },
    })
  })

  it('keeps its images, and a short one stays as it is', async () => {
    const picture = image({ mediaType: 'image/png', data: 'iVBORw0KGgo=' })
    const { result } = await playing([
      tool({ maxResultChars: 100, execute: () => [long, picture, 'the end'] }),
    ])
    expect(result.shown?.map(({ type }) => type)).toEqual(['text', 'image', 'text'])
    const short = await playing([tool({ maxResultChars: 100, execute: () => 'short' })])
    expect(short.result).not.toHaveProperty('shown')
  })

  it('is never cut within a character, nor longer than allowed, whatever it holds', async () => {
    const texts = fc.array(anyText({ maxLength: 400 }), { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc
        .asyncProperty(texts, fc.integer({ min: 100, max: 300 }), async (parts, maxResultChars) => {
          const { result } = await playing([tool({ maxResultChars, execute: () => parts })])
          const text = joinText(result.content)
          const shown = result.shown && joinText(result.shown)
          expect(shown === undefined).toBe(text.length <= maxResultChars)
          if (shown === undefined) return
          const [, from, to] = /left out here, from (\d+) to (\d+)\./.exec(shown) ?? []
          expect(shown.isWellFormed()).toBe(text.isWellFormed())
          expect(shown).toContain(text.slice(Number(to)))
          expect(shown.startsWith(text.slice(0, Number(from)))).toBe(true)
        })
        .beforeEach(newTask),
      { numRuns: tries(20) },
    )
  })

  it.each([99, 1.5, 'long'])('maxResultChars %s is refused', (maxResultChars) => {
    expect(() => tool({ maxResultChars: maxResultChars as never })).toThrow(/maxResultChars/)
    const model = scriptedModel([])
    const agent = { name: 'a', instructions: '', model, maxResultChars: maxResultChars as never }
    expect(() => defineAgent(agent)).toThrow(/maxResultChars/)
  })
})

describe('readResult', () => {
  const reading = (call: string, more: object = {}): ScriptedStep => ({
    toolCalls: [{ name: 'read_result', input: { call, ...more } }],
  })
  const named = (text: string): string => /"call":"([^"]+)"/.exec(text)?.[1] ?? ''

  it('reads on where the cut says, to the end', async () => {
    const ledger = memoryLedger()
    const steps: ScriptedStep[] = [
      { toolCalls: [{ name: 'look', input: {} }] },
      (request) => {
        const last = request.messages.at(-1)
        const text = last?.role === 'tool' ? joinText(last.results[0]!.content) : ''
        const from = Number(/"from":(\d+)/.exec(text)?.[1])
        return reading(named(text), { from }) as { toolCalls: { name: string; input: {} }[] }
      },
      { text: 'Seen.' },
    ]
    const tools = [tool({ maxResultChars: 400 }), readResult({ ledger, maxChars: 5_000 })]
    const { read } = await playing(tools, {}, { steps, ledger })
    expect(read[1]).toBe(
      `Characters 300 to ${long.length} of ${long.length}. This is its end.\n${long.slice(300)}`,
    )
  })

  it('pages, and looks for a text', async () => {
    const ledger = memoryLedger()
    const first = await playing([tool({ maxResultChars: 100 })], {}, { ledger, sessionId: 's' })
    const call = first.result.toolCallId
    const steps = [
      reading(call),
      reading(call, { find: 'line 200' }),
      reading(call, { find: 'line 200', from: 3_000 }),
      reading(call, { from: 99_999 }),
      { text: 'Seen.' },
    ]
    const { read } = await playing(
      [readResult({ ledger, maxChars: 100 })],
      {},
      { steps, ledger, sessionId: 's' },
    )
    const at = long.indexOf('line 200')
    expect(read.slice(1)).toEqual([
      `Characters 0 to 100 of ${long.length}. The next part begins at 100.\n${long.slice(0, 100)}`,
      `Characters ${at} to ${at + 100} of ${long.length}. The next part begins at ${at + 100}.\n${long.slice(at, at + 100)}`,
      'That text does not occur in the result from character 3000 on.',
      `The result has ${long.length} characters: there is nothing from 99999 on.`,
    ])
  })

  it('reads no result of another conversation, and none that is not there', async () => {
    const ledger = memoryLedger()
    const other = await playing([tool({ maxResultChars: 100 })], {}, { ledger, sessionId: 'theirs' })
    const calls = [other.result.toolCallId, other.result.toolCallId.replace(/1$/, '7'), 'call_1', '']
    const steps = [...calls.map((call) => reading(call)), { text: 'No.' }]
    const { results } = await playing([readResult({ ledger })], {}, { steps, ledger, sessionId: 'mine' })
    for (const { outcome, content } of results) {
      expect(outcome).toBe('failed')
      expect(joinText(content)).toMatch(/There is no result of a call/)
      expect(joinText(content)).not.toContain('line')
    }
  })

  it('reads no more of a projection than what it shows, and nothing that a guardrail withheld', async () => {
    const ledger = memoryLedger()
    const own: ScriptedStep = (request) => {
      const last = request.messages.findLast(({ role }) => role === 'assistant')
      const part =
        last?.role === 'assistant' ? last.parts.find(({ type }) => type === 'tool_call') : undefined
      return reading(part?.type === 'tool_call' ? part.toolCallId : '') as never
    }
    const steps: ScriptedStep[] = [{ toolCalls: [{ name: 'look', input: {} }] }, own, { text: 'Seen.' }]
    const hides = tool({
      execute: () => ({ name: 'Ada', secret: 's3cret' }),
      toModel: ({ name }) => ({ name }),
    })
    const projected = await playing([hides, readResult({ ledger })], {}, { steps, ledger })
    expect(projected.read).toEqual(['{"name":"Ada"}', expect.stringContaining('{"name":"Ada"}')])
    expect(joinText(projected.result.content)).toContain('s3cret')
    const withheld = defineGuardrail({
      name: 'no_lines',
      on: 'tool_output',
      check: ({ name }) => (name === 'look' ? { block: 'lines' } : 'pass'),
    })
    const blocked = await playing(
      [tool({}), readResult({ ledger })],
      { guardrails: [withheld] },
      { steps, ledger },
    )
    expect(blocked.read[1]).toBe(
      'A guardrail has withheld or changed this result, so the rest of it cannot be read.',
    )
  })
})

describe('toModel and output', () => {
  it('show the model a projection; the ledger holds both', async () => {
    const { result, read } = await playing([
      tool({ execute: () => ({ rows: [1, 2, 3] }), toModel: ({ rows }) => `${rows.length} rows` }),
    ])
    expect(read).toEqual(['3 rows'])
    expect(result).toMatchObject({
      outcome: 'success',
      content: [{ text: '{"rows":[1,2,3]}' }],
      projected: [{ text: '3 rows' }],
    })
  })

  it('a projection is cut like any result, and one that throws loses nothing', async () => {
    const cut = await playing([tool({ maxResultChars: 100, toModel: (text: string) => text.toUpperCase() })])
    expect(joinText(cut.result.projected!)).toBe(long.toUpperCase())
    expect(joinText(cut.result.shown!)).toMatch(/^LINE 0/)
    const broken = await playing([
      tool({
        toModel: () => {
          throw new Error('oops')
        },
      }),
    ])
    expect(broken.result).toMatchObject({ outcome: 'success', content: [{ text: long }] })
    expect(broken.read).toEqual(['The tool has done its work, but its result cannot be shown (Error: oops).'])
  })

  it('a result that JSON cannot carry is not handed to the projection: the model reads that it cannot be shown', async () => {
    const circle: Record<string, unknown> = {}
    circle.self = circle
    const { result, read } = await playing([tool({ execute: () => circle, toModel: () => 'a circle' })])
    expect(result).toMatchObject({ outcome: 'failed' })
    expect(result).not.toHaveProperty('projected')
    expect(read[0]).toMatch(/^The tool ran, but what it returned cannot be shown/)
  })

  it.each([
    ['a Standard Schema', z.object({ rows: z.number() })],
    [
      'a JSON Schema',
      { type: 'object', properties: { rows: { type: 'number' } }, required: ['rows'] } as const,
    ],
  ])('a result has to fit %s', async (_name, output) => {
    const fits = await playing([tool({ output, execute: () => ({ rows: 3 }) })])
    expect(fits.read).toEqual(['{"rows":3}'])
    const unfit = await playing([tool({ output, execute: () => ({ rows: 'three' }) })])
    expect(unfit.result.outcome).toBe('failed')
    expect(unfit.read[0]).toMatch(
      /^The tool ran, but what it returned does not fit its output schema, so it is not shown\.\n- rows: /,
    )
    expect(unfit.read[0]).not.toContain('three')
    expect(joinText(unfit.result.content)).toContain('{"rows":"three"}')
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('no rule')
      },
      'Error: no rule',
    ],
    ['answers nothing', () => undefined, 'returned neither a value nor issues'],
    ['answers 7', () => 7, 'returned neither a value nor issues'],
    ['answers issues of no form', () => ({ issues: 'many' }), 'returned neither a value nor issues'],
  ])(
    'a result whose schema %s is not shown, and the model reads that the tool ran',
    async (_how, validate, why) => {
      const output = { '~standard': { version: 1, vendor: 'own', validate } } as never
      const { result, read } = await playing([tool({ effect: 'write', output, execute: () => 'x' })])
      expect(result.outcome).toBe('failed')
      expect(read[0]).toMatch(
        /^The tool ran, but what it returned could not be checked against its output schema/,
      )
      expect(read[0]).toContain(why)
      expect(read[0]).toMatch(
        /so it is not shown\. What it does has been done: do not call it again for that\.$/,
      )
      expect(joinText(result.content)).toContain('"x"')
    },
  )

  it('of a result that does not fit, the model reads eight places at most, each short and on one line', async () => {
    const output = { type: 'array', items: { type: 'number' } } as const
    const wrong = (count: number) => tool({ output, execute: () => Array.from({ length: count }, () => 'x') })
    const eight = await playing([wrong(8)])
    const places = Array.from({ length: 8 }, (_, index) => expect.stringMatching(`^- ${index}: `) as string)
    expect(eight.read[0]!.split('\n').slice(1)).toEqual(places)
    const ten = await playing([wrong(10)])
    expect(ten.read[0]!.split('\n').slice(1)).toEqual([...places, '- and 2 more'])
    const message = `no\n\tplace ${'z'.repeat(300)}`
    const told = await playing([
      tool({ output: z.string().refine(() => false, message), execute: () => 'x' }),
    ])
    const [, line = ''] = told.read[0]!.split('\n')
    expect(line).toMatch(/^- the result: no place z+ … \(cut\)$/)
    expect(line).toHaveLength('- '.length + 200)
    expect(told.result.content).toEqual([
      { type: 'text', text: told.read[0] },
      { type: 'text', text: '"x"' },
    ])
  })

  it('conversions of the schema are the result, and the model reads that a write was done', async () => {
    const output = z.object({ at: z.string().transform((text) => text.length) })
    expect((await playing([tool({ output, execute: () => ({ at: 'abc' }) })])).read).toEqual(['{"at":3}'])
    const write = await playing([tool({ effect: 'write', output, execute: () => 5 })])
    expect(write.read[0]).toContain('What it does has been done: do not call it again for that.')
  })
})
