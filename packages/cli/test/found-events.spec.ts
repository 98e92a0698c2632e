import { memoryLedger } from '@tallystick/core'
import { sampleFacts, sampleCallId, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { type EventSearch, type FoundEvent, searchEvents } from '@tallystick/ledger'

const runId = sampleRunId(1)
const fact = sampleFacts(runId)
type Facts = Parameters<typeof stampFacts>[1]

/** What is found in a run of these facts, which follow its start as events 2, 3 … */
async function found(facts: Facts, finder: Partial<EventSearch> = {}): Promise<readonly FoundEvent[]> {
  const ledger = memoryLedger()
  const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = fact.run_started
  const events = stampFacts(runId, [start, ...facts])
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  return await Array.fromAsync(searchEvents(ledger, { call: { inputs: [] }, ...finder }))
}

const said = (all: readonly FoundEvent[]): readonly unknown[] =>
  all.map(({ seq, type, text }) => [seq, type, text])

describe('what was said', () => {
  it('given each kind of words, when no filter is given, then all of them are found in order', async () => {
    const { detail: _detail, ...finished } = fact.run_finished
    const tripped = { ...fact.guardrail_tripped, detail: undefined } as never
    const all = await found([
      { ...fact.input_received, message: sampleMessage('How warm is it?') },
      fact.guardrail_tripped,
      tripped,
      fact.model_stream_failed,
      fact.assistant_message_finished,
      fact.context_compacted,
      fact.cancel_requested,
      fact.limit_reached,
      finished,
    ])
    expect(said(all)).toEqual([
      [2, 'input_received', 'How warm is it?'],
      [3, 'guardrail_tripped', 'secrets A key was cut out.'],
      [4, 'guardrail_tripped', 'secrets'],
      [5, 'model_stream_failed', 'Try again later.'],
      [6, 'assistant_message_finished', 'Let me look'],
      [7, 'context_compacted', 'Weather was asked for.'],
      [8, 'cancel_requested', 'Enough.'],
      [10, 'run_finished', 'answered'],
    ])
    expect(all.every((each) => each.runId === runId && each.turn >= 0 && each.at > 0)).toBe(true)
    expect(await found([fact.run_finished])).toMatchObject([{ text: 'answered The model answered.' }])
  })

  it('given words without content, when they are searched, then nothing is found', async () => {
    const { reason: _reason, ...cancel } = fact.cancel_requested
    const nothing = { ...fact.assistant_message_finished, parts: [], places: [] }
    expect(await found([nothing, cancel])).toEqual([])
  })

  it('given a text, when it is asked for, then letters of either case are found, in any words', async () => {
    const facts = [fact.guardrail_tripped, fact.context_compacted, fact.cancel_requested]
    expect(said(await found(facts, { text: 'ENOUGH' }))).toEqual([[4, 'cancel_requested', 'Enough.']])
    expect(said(await found(facts, { text: 'cut' }))).toEqual([
      [2, 'guardrail_tripped', 'secrets A key was cut out.'],
    ])
    expect(await found(facts, { text: 'warm' })).toEqual([])
  })

  it('given facts whose content was removed, when they are searched, then they are passed over', async () => {
    const removed = { kind: 'redacted', at: 1, by: 'ada' } as const
    const gone = [fact.cancel_requested, fact.tool_request_ready, fact.tool_result].map(
      (each) => ({ ...each, content: undefined, removed }) as never,
    )
    expect(said(await found(gone))).toEqual([[4, 'tool_result', '']])
  })
})

describe('a call', () => {
  const toolCallId = fact.tool_request_ready.toolCallId
  const asked = { ...fact.tool_request_ready, input: { city: 'Seoul' } }
  const { calls } = fact.tool_requests_collected
  const changed = {
    ...fact.tool_requests_collected,
    calls: calls.slice(0, 1).map((call) => ({ ...call, toolCallId, input: { city: 'Busan' } })),
  }
  const decided = { ...fact.approval_decided, toolCallId, input: { city: 'Jeju' } }
  const ended = {
    ...fact.tool_result,
    toolCallId,
    outcome: 'success' as const,
    content: [{ type: 'text' as const, text: '21 degrees' }],
  }
  const open = { ...asked, toolCallId: sampleCallId(runId, 2) }
  const query = (call: Partial<EventSearch['call']>, text?: string): Partial<EventSearch> => ({
    call: { inputs: [], ...call },
    ...(text !== undefined && { text }),
  })

  it('given a call that has ended, when it is found, then at its result, with the input that ran', async () => {
    const result = { toolCallId, tool: 'get_weather', outcome: 'success', text: '21 degrees', turn: 1 }
    expect(await found([asked, ended])).toMatchObject([{ ...result, seq: 3, input: { city: 'Seoul' } }])
    expect(await found([asked, changed, ended])).toMatchObject([{ ...result, input: { city: 'Busan' } }])
    expect(await found([asked, changed, decided, ended])).toMatchObject([
      { ...result, seq: 5, input: { city: 'Jeju' } },
    ])
    expect(await found([ended])).toMatchObject([{ ...result, input: {} }])
  })

  it('given calls that are open, when calls are asked for, then they come last; not where an outcome is asked for', async () => {
    const facts = [open, asked, ended]
    expect(await found(facts)).toMatchObject([
      { seq: 4, type: 'tool_result' },
      { seq: 2, type: 'tool_request_ready', tool: 'get_weather', input: { city: 'Seoul' }, text: '' },
    ])
    expect(await found(facts, query({ outcome: 'success' }))).toMatchObject([{ seq: 4 }])
    expect(await found(facts, query({ outcome: 'failed' }))).toEqual([])
  })

  it('given a filter of calls, when events are searched, then what else was said is left out', async () => {
    const facts = [fact.cancel_requested, asked, ended]
    expect(await found(facts, query({ tool: 'get_weather' }))).toMatchObject([{ seq: 4 }])
    expect(await found(facts, query({ tool: 'get' }))).toEqual([])
    expect(await found([open], query({ tool: 'get' }))).toEqual([])
    expect(await found([open], query({ tool: 'get_weather' }))).toMatchObject([{ seq: 2 }])
  })

  it('given a text, when calls are searched, then in name, input and answer', async () => {
    for (const text of ['GET_WEATHER', 'seoul', '21 DEG', 'get_weather {"city"']) {
      expect(await found([asked, ended, open], query({}, text))).toHaveLength(text === '21 DEG' ? 1 : 2)
    }
    expect(await found([asked, ended, open], query({}, 'Busan'))).toEqual([])
  })
})
