// Every verdict that a guardrail may give, wherever it looks, and what comes of it on record.
import { manualClock, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { guardCall, selectGuardrails, type GuardrailVerdict } from '../src/tools/guardrails.ts'
import { ofType, stage, type StageOptions } from './stage.ts'

const places = ['input', 'output', 'tool_input', 'tool_output'] as const

/** What is on record of a guardrail of a run that looks a thing up and answers. */
async function tripped(on: (typeof places)[number], verdict: unknown, more: StageOptions = {}) {
  const seen: unknown[] = []
  const guardrails = [
    { name: 'first', on, check: () => verdict as GuardrailVerdict<never> },
    {
      ...{ name: 'second', on },
      check: (subject: { readonly text?: string; readonly input?: unknown }) => {
        seen.push(on === 'tool_input' ? subject.input : subject.text)
        return 'pass' as const
      },
    },
  ] as never
  const steps = [{ toolCalls: [{ name: 'look', input: { at: 'tea' } }] }, { text: 'Seen.' }]
  const tools = [testTool({ name: 'look', run: () => 'blue' })]
  const set = stage({ steps, tools, guardrails, ...more })
  const { runId } = await set.play('Look.')
  const [event] = ofType(await set.eventsOf(runId), 'guardrail_tripped')
  const { guardrail, action, detail, replacement } = event ?? {}
  return { event: event && { guardrail, on: event.on, action, detail, replacement }, seen: seen[0] }
}

const original = { input: 'Look.', output: 'Seen.', tool_input: { at: 'tea' }, tool_output: 'blue' }
const blocked = (on: string, detail: string) => ({
  ...{ guardrail: 'first', on, action: 'block', detail, replacement: undefined },
})

describe.each(places)('a guardrail on %s', (on) => {
  const another = on === 'tool_input' ? { at: 'milk' } : 'Something else.'
  const recorded = on === 'tool_input' ? undefined : [{ type: 'text', text: 'Something else.' }]

  it('that passes leaves nothing on record', async () => {
    expect(await tripped(on, 'pass')).toEqual({ event: undefined, seen: original[on] })
  })

  it.each<readonly [unknown, string]>([
    [{ block: 'bad' }, 'bad'],
    [{ block: 7 }, 'something'],
    [null, "it answered no verdict: 'pass', { block }, { replace } or { record }"],
    [undefined, "it answered no verdict: 'pass', { block }, { replace } or { record }"],
    ['block', "it answered no verdict: 'pass', { block }, { replace } or { record }"],
    [true, "it answered no verdict: 'pass', { block }, { replace } or { record }"],
    [{ replace: 7 }, 'what it put in its place does not fit there'],
    [{ replace: null }, 'what it put in its place does not fit there'],
    [{}, 'what it put in its place does not fit there'],
  ])('that answers %j blocks, and the next one does not look', async (verdict, detail) => {
    expect(await tripped(on, verdict)).toEqual({ event: blocked(on, detail), seen: undefined })
  })

  it('that records lets what it saw be as it was', async () => {
    for (const [record, detail] of [
      ['noted', 'noted'],
      [7, 'something'],
    ])
      expect(await tripped(on, { record })).toEqual({
        event: { guardrail: 'first', on, action: 'record', detail, replacement: undefined },
        seen: original[on],
      })
  })

  it('that replaces shows the next one what is in its place', async () => {
    const event = { guardrail: 'first', on, action: 'replace', replacement: recorded }
    expect(await tripped(on, { replace: another })).toEqual({
      event: { ...event, detail: undefined },
      seen: another,
    })
    expect(await tripped(on, { replace: another, why: 'tidy' })).toEqual({
      event: { ...event, detail: 'tidy' },
      seen: another,
    })
  })
})

describe('what a guardrail puts in the place of something', () => {
  it.each(['input', 'tool_output'] as const)('on %s may be parts', async (on) => {
    const parts = [{ type: 'text', text: 'One.' }]
    const { event, seen } = await tripped(on, { replace: parts })
    expect([event?.replacement, seen]).toEqual([parts, 'One.'])
    const wrong = blocked(on, 'what it put in its place does not fit there')
    expect((await tripped(on, { replace: [{ type: 'text' }] })).event).toEqual(wrong)
    expect((await tripped(on, { replace: { type: 'text', text: 'x' } })).event).toEqual(wrong)
  })

  it('is a text on output, and an object on tool input', async () => {
    const wrong = 'what it put in its place does not fit there'
    const parts = [{ type: 'text', text: 'One.' }]
    expect((await tripped('output', { replace: parts })).event).toEqual(blocked('output', wrong))
    expect((await tripped('tool_input', { replace: 'x' })).event).toEqual(blocked('tool_input', wrong))
    expect((await tripped('tool_input', { replace: { at: 1n } })).event).toEqual(blocked('tool_input', wrong))
  })
})

describe('the guardrails of a call', () => {
  const call = { toolCallId: 'c', name: 'look', input: { at: 'tea' } } as never
  const found = (...verdicts: readonly unknown[]) =>
    guardCall(
      verdicts.map((verdict, index) => ({
        ...{ name: `g${index}`, on: 'tool_input' as const },
        check: () => verdict as GuardrailVerdict<never>,
      })),
      call,
      {} as never,
      manualClock(),
    )

  it('leave the last input that one of them put there', async () => {
    expect(await found('pass')).toStrictEqual({ finds: [] })
    expect(await found({ replace: { at: 'milk' } }, { record: 'x' }, 'pass')).toStrictEqual({
      finds: [
        { guardrail: 'g0', action: 'replace', toolCallId: 'c' },
        { guardrail: 'g1', action: 'record', detail: 'x', toolCallId: 'c' },
      ],
      input: { at: 'milk' },
    })
  })

  it('stop it with the reason of the one that blocks', async () => {
    expect(await found({ block: 'no tea' })).toStrictEqual({
      finds: [{ guardrail: 'g0', action: 'block', detail: 'no tea', toolCallId: 'c' }],
      blocked: 'The guardrail g0 stopped this call: no tea. Nothing was run.',
    })
  })

  it('may take a minute where they do not say, and no longer', async () => {
    for (const timeoutMs of [undefined, 50]) {
      const clock = manualClock()
      const guardrail = {
        ...{ name: 'slow', on: 'tool_input' as const, check: () => new Promise<'pass'>(() => {}) },
        ...(timeoutMs !== undefined && { timeoutMs }),
      }
      let ending: unknown = 'waits'
      void guardCall([guardrail], call, {} as never, clock).then(({ finds }) => (ending = finds))
      clock.advance((timeoutMs ?? 60_000) - 1)
      for (let turn = 0; turn < 20; turn++) await Promise.resolve()
      expect(ending).toBe('waits')
      clock.advance(1)
      for (let turn = 0; turn < 20; turn++) await Promise.resolve()
      expect(ending).toMatchObject([{ action: 'block', detail: 'it did not answer in time' }])
    }
    const clock = manualClock()
    const check = async (): Promise<'pass'> => 'pass'
    await guardCall([{ name: 'g', on: 'tool_input', check }], call, {} as never, clock)
    expect(clock.pending).toBe(0)
  })
})

describe('the guardrails of one kind', () => {
  const guardrails = places.map((on) => ({ name: on, on, check: () => 'pass' }) as never)

  it('are those that look there, of the names that were asked for', () => {
    expect(selectGuardrails(guardrails, 'output')).toEqual([guardrails[1]])
    expect(selectGuardrails(guardrails, 'output', ['output', 'input'])).toEqual([guardrails[1]])
    expect(selectGuardrails(guardrails, 'output', ['input'])).toEqual([])
  })
})
