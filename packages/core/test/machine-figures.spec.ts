import { describe, expect, it } from 'vitest'
import { buildForkedEvents, estimateMessageTokens, tallyCalls } from '@tallystick/core/internal'
import { decide, evolve } from '@tallystick/core/machine'
import { type Fact, type FactOf, deriveToolCallId, type UserMessage } from '@tallystick/core/vocabulary'
import { given, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import type { RunState } from '../src/machine/state.ts'
import {
  begun,
  called,
  callId,
  endedCall,
  executing,
  pending,
  replyFinished,
  requested,
  runId,
  startedCall,
} from './pages.ts'

const stateOf = (page: readonly Fact[]): RunState => given(page).state!

describe('the tally of a run', () => {
  it('counts requests and results, and names the calls that are open', () => {
    const page = [...executing(['look', 'look']), startedCall(1), endedCall(1)]
    expect(tallyCalls(stampFacts(runId, page))).toEqual({ requests: 2, results: 1, open: [callId(2)] })
    expect(tallyCalls([])).toEqual({ requests: 0, results: 0, open: [] })
  })
})

describe('the tokens of a message', () => {
  const tokens = (...parts: readonly object[]): number =>
    estimateMessageTokens({ role: 'user', parts } as unknown as UserMessage) - 6

  it('of a document are by its pages, and by its bytes where it is text', () => {
    const file = (mediaType: string, base64Characters?: number): number =>
      tokens({
        ...{ type: 'file', mediaType },
        ...(base64Characters !== undefined && { data: 'a'.repeat(base64Characters) }),
      })
    expect(file('application/pdf')).toBe(30_000)
    expect(file('application/pdf', 4)).toBe(3_000)
    expect(file('application/pdf', 20_000)).toBe(3_000)
    expect(file('application/pdf', 20_004)).toBe(6_000)
    expect(file('application/pdf', 80_000)).toBe(12_000)
    expect(file('application/pdf', 2_100_000)).toBe(300_000)
    for (const mediaType of ['text/plain', 'application/json', 'image/svg+xml']) {
      expect(file(mediaType, 8_000)).toBe(3_000)
    }
  })

  it('of an image are always the same, and of a text by its characters', () => {
    expect(tokens({ type: 'image', mediaType: 'image/png', data: 'a'.repeat(9_999) })).toBe(1_600)
    expect(tokens({ type: 'text', text: 'a'.repeat(34) })).toBe(10)
    expect(tokens({ type: 'text', text: 'a'.repeat(36) })).toBe(11)
    expect(tokens()).toBe(0)
  })
})

describe('a fork', () => {
  const fork = sampleRunId(2)

  it('renames the ids of its own calls, and no text that only looks like one', () => {
    const [own, other] = [deriveToolCallId(runId, 1, 1, 1), deriveToolCallId(sampleRunId(3), 1, 1, 1)]
    const prefix = own.slice(0, -'_1_1_1'.length)
    const kept = [other, `${own} said`, `see ${own}`, `${prefix}_1_1`, `${prefix}_x_1_1`, `${own}_1`, prefix]
    const page = [...begun(), called(), requested(1, 'look', { own, kept, deep: { own: [own] } })]
    const renamed = buildForkedEvents(stampFacts(runId, page), { runId: fork }).at(-1)
    const id = deriveToolCallId(fork, 1, 1, 1)
    expect(renamed).toMatchObject({
      ...{ runId: fork, epoch: 1, toolCallId: id },
      input: { own: id, kept, deep: { own: [id] } },
    })
  })

  it('of nothing is nothing', () => {
    expect(buildForkedEvents([], { runId: fork })).toEqual([])
  })
})

describe('the limit on calls of one tool', () => {
  it('counts the calls before in the same reply, and those of the run', () => {
    const three = (max: number): unknown =>
      pending(executing(['look', 'look', 'look', 'other'], {}, { maxCallsByTool: { look: max } }))
    expect(three(2)).toEqual(['settle_calls', 'limit_reached 3'])
    expect(three(1)).toEqual(['settle_calls', 'limit_reached 2', 'limit_reached 3'])
    expect(three(3)).toEqual([
      'run_tools',
      'start 1 attempt 1',
      'start 2 attempt 1',
      'start 3 attempt 1',
      'start 4 attempt 1',
    ])
    const page = executing(['look', 'look', 'look'], {}, { maxCallsByTool: { look: 2 } })
    expect(pending([...page, startedCall(1), endedCall(1)])).toEqual(['settle_calls', 'limit_reached 3'])
  })
})

describe('an edit of the history', () => {
  const [first] = begun()
  const started = first as FactOf<'run_started'>
  const guarded: Fact = {
    ...started,
    definition: { ...started.definition, guardrails: [{ name: 'clean', on: 'input' }] },
  }
  const carried: Fact = {
    ...{ type: 'history_carried', turn: 0, uncheckedFrom: 2 },
    messages: ['One.', 'Two.', 'Three.'].map((text) => sampleMessage(text)),
  }
  const from = (...edits: FactOf<'history_edited'>['edits']): number | undefined =>
    stateOf([guarded, carried, { type: 'history_edited', turn: 0, by: 'ada', reason: 'A key.', edits }])
      .inputCheck?.from

  it('moves what is to be checked by the messages that it takes away before it, and by no others', () => {
    const message = sampleMessage('Changed.')
    expect(from({ index: 0 })).toBe(1)
    expect(from({ index: 0 }, { index: 1 })).toBe(0)
    expect(from({ index: 2 })).toBe(2)
    expect(from({ index: 0, message })).toBe(2)
    expect(from({ index: 0, message }, { index: 1 })).toBe(1)
  })
})

describe('the time that a run waits', () => {
  const after = (page: readonly Fact[], fact: Fact, ms: number): number => {
    const state = stateOf(page)
    const [event] = stampFacts(runId, [fact], { afterSeq: state.seq })
    return evolve(state, { ...event!, at: state.at + ms }).waitedMs - state.waitedMs
  }

  it('is what passed before a command resumed it or answered it, and nothing else', () => {
    const [started, input] = begun()
    expect(after([started!], input!, 700)).toBe(700)
    expect(after(begun(), called(), 700)).toBe(0)
    const resumed: Fact = { type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [] }
    expect(after([...begun(), called()], resumed, 500)).toBe(500)
    expect(after([...begun(), called()], resumed, -500)).toBe(0)
  })
})

describe('a report about checked calls', () => {
  const calls = [requested(1)]
  const state = stateOf([...begun(), called(), ...calls, replyFinished(calls)])
  const stamp = { at: state.at, random: 0 }
  const report = (turn = 1) =>
    ({ type: 'calls_checked', turn, calls: [{ toolCallId: callId(1), verdict: { kind: 'run' } }] }) as const

  it('has them run, once, and not after a cancel or a block', () => {
    const nothing = decide(state, report(2), stamp)
    const collected = decide(state, report(), stamp)
    expect(collected).toMatchObject({ facts: [{ type: 'tool_requests_collected', turn: 1 }] })
    expect(decide({ ...state, cancel: { at: 1 } }, report(), stamp)).toEqual(nothing)
    expect(decide({ ...state, blocked: { on: 'input', guardrail: 'clean' } }, report(), stamp)).toEqual(
      nothing,
    )
    expect(decide(stateOf(executing()), report(), stamp)).toEqual(nothing)
  })
})
