import { firstValueFrom, toArray } from 'rxjs'
import { describe, expect, expectTypeOf, it } from 'vitest'
import * as z from 'zod'
import {
  createRuntime,
  defineAgent,
  defineGuardrail,
  memoryLedger,
  type PartialOutput,
} from '@tallystick/core'
import {
  manualClock,
  scriptedModel,
  testTool,
  waitUntilSettled,
  type ScriptedStep,
} from '@tallystick/testkit'
import { readPartialJson } from '../src/values/partial-json.ts'
import { AnswerReader } from '../src/runtime/partial-output.ts'
import { advanceShownText, noText } from '../src/runtime/run-streams.ts'
import { evolve } from '@tallystick/core/machine'
import type { RunState, RuntimeEvent } from '@tallystick/core'
import { recorded, type StageOptions, stage } from './stage.ts'

const contact = z.object({ name: z.string(), age: z.number(), tags: z.array(z.string()).default([]) })

async function play(steps: readonly ScriptedStep[], options: StageOptions = {}) {
  const set = stage({ steps, ...options })
  const run = set.start()
  const seen = firstValueFrom(run.partialOutput$.pipe(toArray()))
  const result = await set.waitUntilSettled(run.result)
  return { set, run, result, seen: await seen }
}

describe('partialOutput$', () => {
  it('is typed by the output, and ends with what the schema makes of the answer', async () => {
    const text = '{"name":"Ines","age":41}'
    const clock = manualClock()
    const model = scriptedModel([{ text }])
    const agent = defineAgent({ name: 'reader', instructions: 'Read.', model, output: contact })
    const run = createRuntime({ ledger: memoryLedger(), host: { clock } }).run(agent, 'Go.')
    const seen = firstValueFrom(run.partialOutput$.pipe(toArray()))
    const { output } = await waitUntilSettled(clock, run.result)
    expectTypeOf(await seen).toEqualTypeOf<(PartialOutput<z.infer<typeof contact>> | undefined)[]>()
    expectTypeOf<PartialOutput<z.infer<typeof contact>>>().toEqualTypeOf<{
      readonly name?: string
      readonly age?: number
      readonly tags?: readonly string[]
    }>()
    expect((await seen).at(-1)).toEqual({ name: 'Ines', age: 41, tags: [] })
    expect(output).toEqual({ name: 'Ines', age: 41, tags: [] })
  })

  it('begins anew where the answer is written again, and says so', async () => {
    const { seen, run } = await play([{ text: '{"name":"In' }, { text: '{"name":"Ines","age":41}' }], {
      output: contact,
    } as StageOptions)
    const anew = seen.indexOf(undefined)
    expect(seen[anew - 1]).toEqual({ name: 'In' })
    expect(seen.slice(anew + 1)).not.toContain(undefined)
    expect(seen.at(-1)).toEqual({ name: 'Ines', age: 41, tags: [] })
    // Whoever comes after a place gets what follows it.
    let last = 0
    for await (const event of run) if (event.type === 'output_checked' && !event.valid) last = event.seq
    expect(await firstValueFrom(run.after(last).partialOutput$.pipe(toArray()))).toEqual(seen.slice(anew + 1))
  })

  it('takes back what a guardrail withheld, and what a run that ends otherwise had begun', async () => {
    const guardrail = defineGuardrail({ name: 'none', on: 'output', check: () => ({ block: 'rude' }) })
    const blocked = await play([{ text: '{"name":"Ines","age":41}' }], {
      output: contact,
      guardrails: [guardrail],
    } as StageOptions)
    expect(blocked.result).toMatchObject({ reason: 'guardrail', output: undefined })
    expect(blocked.seen.at(-1)).toBe(undefined)
    expect(blocked.seen.length).toBeGreaterThan(1)
    const cut = await play([{ text: '{"name":"Ines","a', stopReason: 'max_tokens' }], {
      output: contact,
      maxOutputRepairs: 0,
    } as StageOptions)
    expect(cut.result.output).toBe(undefined)
    expect(cut.seen.at(-2)).toEqual({ name: 'Ines' })
    expect(cut.seen.at(-1)).toBe(undefined)
  })

  it('is the text of an agent without a schema; what came before a tool call is no answer', async () => {
    const look = testTool({ name: 'look' })
    const { seen, run, result } = await play(
      [{ text: 'I look.', toolCalls: [{ name: 'look', input: {} }] }, { text: 'Warm.' }],
      { tools: [look] },
    )
    const anew = seen.indexOf(undefined)
    expect([seen[anew - 1], seen.at(-1)]).toEqual(['I look.', 'Warm.'])
    expect(result.output).toBe('Warm.')
    const pieces: string[] = []
    for await (const text of run.text()) pieces.push(text)
    expect(pieces.length).toBeGreaterThan(2)
    expect(pieces.join('')).toBe('I look.Warm.')
  })

  it('holds keys of objects as fields, whatever they are called', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const text = '{"__proto__":{"isAdmin":true},"constructor":1,"a":"x"}'
    const { seen } = await play([{ text }], { output: schema })
    for (const value of seen) {
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
      expect((value as { isAdmin?: boolean }).isAdmin).toBe(undefined)
    }
    expect(JSON.stringify(seen.at(-1))).toBe(text)
  })
})

describe('run.text()', () => {
  it('ends when the run waits, and continues after a place', async () => {
    const pay = testTool({ name: 'pay', effect: 'write' })
    const set = stage({
      steps: [{ text: 'I pay.', toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }],
      tools: [pay],
      approval: () => 'ask',
    })
    const run = set.start()
    const { seq, pendingApprovals } = await set.waitUntilSettled(run.result)
    const read = async (texts: AsyncIterable<string>): Promise<string> => {
      let all = ''
      for await (const text of texts) all += text
      return all
    }
    expect(await read(run.text())).toBe('I pay.')
    await run.approve(pendingApprovals[0]!, { by: 'ada' })
    await set.waitUntilSettled(run.result)
    expect(await read(run.after(seq).text())).toBe('Paid.')
  })
})

describe('a partial answer of a hostile model', () => {
  it('that is nested too deep for a ledger is none', () => {
    for (const open of ['[', '{"a":']) expect(readPartialJson(open.repeat(100_000))).toBe(undefined)
    expect(readPartialJson('['.repeat(400))).toBeInstanceOf(Array)
  })

  it('that is huge is read a number of times that grows with the logarithm of its length', async () => {
    const { set, run } = await play([{ text: '{"name":"Ines","age":41}' }], {
      output: contact,
    } as StageOptions)
    const events = await recorded(set.ledger, run.id)
    const at = events.findIndex(({ type }) => type === 'assistant_text_delta')
    const reader = new AnswerReader()
    let state: RunState | undefined
    let shown = noText
    const reports = (event: RuntimeEvent): number => {
      state = evolve(state, event)
      shown = advanceShownText(shown, { event, state })
      return reader.next({ event, state }, shown) ? 1 : 0
    }
    let count = 0
    for (const event of events.slice(0, at)) count += reports(event)
    const delta = events[at] as Extract<RuntimeEvent, { type: 'assistant_text_delta' }>
    const write = (text: string, index: number): number => reports({ ...delta, text, seq: delta.seq + index })
    count += write('{"name":"', 0)
    for (let piece = 1; piece <= 20_000; piece++) count += write('word ', piece)
    // 64 times for each time that the text grows by a factor of e.
    expect(count).toBeLessThan(64 * Math.log(100_000))
    expect(count).toBeGreaterThan(400)
  })
})
