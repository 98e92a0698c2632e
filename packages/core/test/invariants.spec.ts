import { beforeAll, describe, expect, it } from 'vitest'
import { LawBrokenError, type Limits, type RuntimeEvent } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { testTool } from '@tallystick/testkit'
import { stage } from './stage.ts'

/** Plays a run that reasons, looks, and answers at its limit of turns. */
async function record(): Promise<readonly RuntimeEvent[]> {
  const set = stage({
    steps: [
      { reasoning: 'Where is it?', text: 'Looking.', toolCalls: [{ name: 'look', input: {} }] },
      { text: 'It is blue.', usage: { inputTokens: 10, outputTokens: 3 } },
    ],
    tools: [testTool({ name: 'look' })],
    limits: { maxTurns: 2 },
  })
  const result = await set.play()
  expect(result).toMatchObject({ reason: 'turn_limit', text: 'It is blue.', turns: 2 })
  return await set.eventsOf(result.runId)
}

/** The law that an altered record breaks, and where. */
function brokenBy(
  events: readonly RuntimeEvent[],
  alter: (event: RuntimeEvent) => object | undefined,
): readonly [law: number, seq: number] | undefined {
  const altered = events.map((event) => ({ ...event, ...alter(event) }))
  expect(altered).not.toEqual(events)
  try {
    auditAll(altered)
    return undefined
  } catch (error) {
    if (error instanceof LawBrokenError) return [error.law, error.seq]
    throw error
  }
}

describe('an audit of a ledger', () => {
  let events: readonly RuntimeEvent[] = []
  beforeAll(async () => {
    events = await record()
  })
  const seqOf = (type: RuntimeEvent['type'], nth = 0): number =>
    events.filter((event) => event.type === type).at(nth)!.seq

  it('finds nothing in what a runtime has written', () => {
    expect(auditAll(events)?.phase).toBe('done')
    expect(auditAll([])).toBeUndefined()
  })

  it('law 4: finds time that falls, also between two pieces of a text', () => {
    const pieces = events.filter(({ type, turn }) => type === 'assistant_text_delta' && turn === 2)
    expect(pieces.length).toBeGreaterThanOrEqual(3)
    const [first, second, third] = pieces.map(({ seq }) => seq)
    const last = events.at(-1)!.at
    const lateFrom = (from: number) => (event: RuntimeEvent) =>
      event.seq >= from ? { at: last + (event.seq === third ? 5 : 9) } : undefined
    expect(brokenBy(events, lateFrom(second!))).toEqual([4, third])
    expect(brokenBy(events, lateFrom(first!))).toEqual([4, third])
    expect(brokenBy(events, ({ seq }) => (seq === second ? { at: 0 } : undefined))).toEqual([4, second])
  })

  it('law 7: finds a message, a result or a definition that the model did not see', () => {
    const shown: readonly ((event: RuntimeEvent) => object | undefined)[] = [
      (event) => (event.type === 'input_received' ? { message: { role: 'user', parts: [] } } : undefined),
      (event) => (event.type === 'tool_result' ? { content: [{ type: 'text', text: 'red' }] } : undefined),
      (event) =>
        event.type === 'run_started' ? { definition: { ...event.definition, digest: 'another' } } : undefined,
      (event) => (event.type === 'model_call_started' ? { maxOutputTokens: 7 } : undefined),
      (event) =>
        event.type === 'model_call_started' ? { model: { ...event.model, modelId: 'other' } } : undefined,
      (event) => (event.type === 'model_call_started' ? { requestDigest: 'd' } : undefined),
    ]
    const [first, second] = [seqOf('model_call_started'), seqOf('model_call_started', 1)]
    expect(shown.map((alter) => brokenBy(events, alter))).toEqual([
      [7, first],
      [7, second],
      ...Array.from({ length: 4 }, () => [7, first]),
    ])
  })

  it('law 9: finds a model call past a limit, and a finalizing call that may ask for tools, or has no limit', () => {
    const started = (event: RuntimeEvent): boolean => event.type === 'model_call_started' && event.turn === 2
    const seq = seqOf('model_call_started', 1)
    const limitedTo = (limits: Limits) => (event: RuntimeEvent) =>
      event.type === 'run_started' ? { limits } : undefined
    for (const limits of [{ maxTurns: 1 }, { maxTotalTokens: 20 }, { maxDurationMs: 0 }]) {
      expect(brokenBy(events, limitedTo(limits))?.[0]).toBe(9)
    }
    expect(brokenBy(events, limitedTo({ maxTurns: 1 }))).toEqual([9, seq])
    const grants = [{}, { turns: 1, outputTokens: 7 }, { turns: 0 }]
    for (const grant of grants) {
      expect(brokenBy(events, (event) => (started(event) ? { grant } : undefined))).toEqual([9, seq])
    }
    const askable = { finalizing: true, toolChoice: { type: 'auto' } }
    expect(brokenBy(events, (event) => (started(event) ? askable : undefined))).toEqual([7, seq])
    const unlimited = { limits: { onLimit: 'finalize' } }
    const met = seqOf('limit_reached')
    const unmet = events
      .filter((event) => event.seq !== met)
      .map((event) => (event.seq < met ? event : { ...event, seq: event.seq - 1 }))
    expect(brokenBy(unmet, ({ type }) => (type === 'run_started' ? unlimited : undefined))).toEqual([
      9,
      seq - 1,
    ])
  })

  it('law 12: finds text and reasoning that were never streamed', () => {
    const seq = seqOf('assistant_message_finished')
    for (const type of ['assistant_text_delta', 'assistant_reasoning_delta'] as const) {
      const first = seqOf(type)
      expect(brokenBy(events, (event) => (event.seq === first ? { text: 'Else' } : undefined))).toEqual([
        12,
        seq,
      ])
    }
  })

  it('law 6: finds totals at the end that are not those of the events', () => {
    const seq = seqOf('run_finished')
    for (const wrong of [{ turns: 7 }, { toolCalls: 0 }]) {
      expect(brokenBy(events, ({ type }) => (type === 'run_finished' ? wrong : undefined))).toEqual([6, seq])
    }
  })

  it('says in its error which law, where, and what', () => {
    expect(() => {
      auditAll(events.map((event) => (event.type === 'run_finished' ? { ...event, turns: 7 } : event)))
    }).toThrow(
      `Law 6 is broken at seq ${events.length}: the run says 7 turns and 1 tool calls, its events say 2 and 1`,
    )
  })
})
