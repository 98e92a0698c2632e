import type { Message, RunState } from '@tallystick/core'
import { type AssistantPart, deriveChildRunId } from '@tallystick/core/vocabulary'
import { sampleCallId, sampleMessage, sampleRunId } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { formatInput, listOpenCalls, formatStory, formatTranscript } from '../src/view/story-text.ts'
import { formatCitations } from '../src/command/text.ts'

const runId = sampleRunId(1)
const callId = sampleCallId(runId)
const paint = (style: string, text: string): string => `<${style} ${text}>`
const lines = (...all: readonly string[]): string => all.map((line) => `${line}\n`).join('')
const shown = (message: object, open: readonly object[] = []): string =>
  formatTranscript([message as Message], { paint, open: open as never })
const reply = (...parts: readonly object[]): object => ({
  ...{ role: 'assistant', parts: parts as readonly AssistantPart[], stopReason: 'end', partial: false },
})

describe('a transcript', () => {
  it('has each message under its role', () => {
    expect(formatTranscript([sampleMessage('Hi\nyou'), sampleMessage('Bye')], { paint, open: [] })).toBe(
      lines('<bold user>', '  Hi', '  you', '', '<bold user>', '  Bye', ''),
    )
    const said = [
      { type: 'text', text: 'Yes.', citations: [{ url: 'https://a', title: 'A' }] },
      { type: 'reasoning', text: 'Hm.' },
    ]
    expect(shown(reply(...said))).toBe(
      lines('<bold assistant <dim (end)>>', '  Yes.', '  <cyan [1]> <dim A, https://a>', '  <dim Hm.>', ''),
    )
    expect(shown({ ...reply(), partial: true, stopReason: 'other' })).toContain('<dim (other, cut off)>')
  })

  it('has calls and results under the id that joins them', () => {
    const call = { type: 'tool_call', toolCallId: callId, name: 'look', input: { at: 'tea' } }
    const malformed = { text: '{"at', error: 'x' }
    expect(shown(reply(call, { ...call, malformed }))).toBe(
      lines(
        '<bold assistant <dim (end)>>',
        `  <cyan ┌ request> look <dim ${callId}>`,
        '    {"at":"tea"}',
        `  <cyan ┌ request> look <dim ${callId}>`,
        '    {"at',
        '',
      ),
    )
    const content = [{ type: 'text', text: '5\nleft' }]
    const results = [
      { toolCallId: callId, name: 'look', outcome: 'success', content },
      { toolCallId: 'other', name: 'pay', outcome: 'cancelled', content },
    ]
    const open = [{ toolCallId: 'other', waits: 'waits for an approval' }]
    expect(shown({ role: 'tool', results }, open)).toBe(
      lines(
        '<bold tool>',
        `  <cyan └ result > look <dim ${callId}> success`,
        '    5',
        '    left',
        '  <yellow ╎ open   > pay <dim other> waits for an approval',
        '',
      ),
    )
  })

  it('has what the provider did itself', () => {
    const opaque = { provider: 'p', api: 'a', data: null }
    const part = { type: 'provider', kind: 'web_search', opaque }
    const whose = '<dim [p: web_search]>'
    const of = (more: object): string => shown(reply({ ...part, ...more }))
    expect(of({})).toBe(lines('<bold assistant <dim (end)>>', `  ${whose}`, ''))
    const executed = { id: 'w1', name: 'search' }
    expect(of({ executed: { ...executed, input: { q: 'tea' }, outcome: 'success' } })).toBe(
      lines(
        '<bold assistant <dim (end)>>',
        `  <cyan ┌ run by the provider> search <dim w1> ${whose}`,
        '    {"q":"tea"}',
        `  <cyan └ result> search <dim w1> success ${whose}`,
        '',
      ),
    )
    expect(of({ executed: { ...executed, outcome: 'failed' } })).toBe(
      lines('<bold assistant <dim (end)>>', `  <cyan └ result> search <dim w1> failed ${whose}`, ''),
    )
    expect(of({ sources: [{ url: 'https://a' }] })).toContain('\n  <cyan [1]> <dim https://a>\n')
  })
})

describe('a reply in the story of a run', () => {
  it('has its text and its reasoning further in than its calls, and then what the model wrote instead', () => {
    const call = { type: 'tool_call', toolCallId: callId, name: 'look', input: { at: 'tea' } }
    const text = { type: 'text', text: 'Yes.\nTea.', citations: [{ url: 'https://a', title: 'A' }] }
    const event = {
      ...{ stopReason: 'tool_use', partial: true, parts: [{ type: 'reasoning', text: 'Hm.' }, text, call] },
      written: [{ part: { type: 'text', text: 'Tea?' } }],
    }
    const at = { turn: 1, fromSeq: 7, toSeq: 7, at: 3_500, tookMs: 2_500 }
    const view = { paint, state: {} as RunState, history: [], whole: false }
    expect(formatStory({ parts: [{ kind: 'reply', ...at, event } as never], calls: [] }, view)).toBe(
      lines(
        '<bold assistant> <dim (turn 1, event 7, 1970-01-01T00:00:03.500Z, took 2.5 s, tool_use, cut off)>',
        ...['    <dim Hm.>', '    Yes.', '    Tea.', '    <cyan [1]> <dim A, https://a>'],
        ...[`  <cyan ┌ request> look <dim ${callId}>`, '      {"at":"tea"}'],
        ...['<dim     the model wrote: Tea?>', ''],
      ),
    )
  })
})

describe('an attempt that failed', () => {
  const failed = (more: object): string => {
    const part = {
      ...{ kind: 'failed', turn: 1, fromSeq: 7, toSeq: 9, at: 3_500, attempt: 1, tookMs: 2_500 },
      ...{ failure: { class: 'overloaded', message: 'Busy.' }, withdrawn: '', withdrawnCalls: [], ...more },
    }
    const view = { paint, state: {} as RunState, history: [], whole: false }
    return formatStory({ parts: [part as never], calls: [] }, view)
  }
  const head = '<bold attempt 1 failed> <dim (turn 1, events 7-9, 1970-01-01T00:00:03.500Z, took 2.5 s'

  it('is shown with how long it took, and after how long it was tried again', () => {
    expect(failed({ retryAt: 7_500 })).toBe(
      lines(`${head}, tried again after 4.0 s)>`, '    <red overloaded: Busy.>', ''),
    )
    expect(failed({ retryAt: 3_000 })).toContain(`${head}, tried again after 0 ms)>\n`)
    expect(failed({})).toContain(`${head})>\n`)
  })

  it('is shown with what it withdrew', () => {
    const withdrawnCalls = [{ name: 'pay', toolCallId: 'call_1' }]
    expect(failed({ withdrawn: 'I\npay', withdrawnCalls })).toBe(
      lines(
        ...[`${head})>`, '    <red overloaded: Busy.>', '  withdrawn:', '    <dim I', '    pay>'],
        ...['  withdrawn: the request of pay <dim call_1>', ''],
      ),
    )
  })
})

describe('what a text leans on', () => {
  const line = (citation: object): string => formatCitations([citation], (_style, text) => text).join()

  it('is a line each, with where it is to be read and what it says', () => {
    expect(formatCitations(undefined, paint)).toEqual([])
    expect(formatCitations([{ url: 'a' }, { url: 'b' }], (_style, text) => text)).toEqual(['[1] a', '[2] b'])
    expect(line({ title: 'T', url: 'u', fileId: 'f', pages: { from: 2, to: 2 }, quote: 'So\nit is' })).toBe(
      '[1] T, u, f, page 2 “So it is”',
    )
    expect(line({ fileId: 'f', pages: { from: 2, to: 4 } })).toBe('[1] f, pages 2 to 4')
    expect(line({ url: 'u', quote: 'q'.repeat(130) })).toBe(`[1] u “${'q'.repeat(119)}…”`)
    expect(line({ title: 't'.repeat(500) })).toBe(`[1] ${'t'.repeat(479)}…`)
  })
})

describe('the input of a call', () => {
  it('is on one line up to 80 characters, with its keys in order', () => {
    const input = (length: number) => ({ b: 'x'.repeat(length - 14), a: 1 })
    expect(formatInput(input(80))).toBe(`{"a":1,"b":"${'x'.repeat(66)}"}`)
    expect(formatInput(input(81))).toBe(`{\n  "a": 1,\n  "b": "${'x'.repeat(67)}"\n}`)
  })
})

describe('a call without a result', () => {
  const waits = (status: string, more: object = {}): string | undefined => {
    const call = { toolCallId: callId, name: 'look', status, ...more }
    const state = { runId, phase: 'executing', calls: [call] } as unknown as RunState
    return listOpenCalls(state)[0]?.waits
  }
  const child = deriveChildRunId(runId, callId)

  it('waits for what its status says', () => {
    expect(waits('awaiting_approval')).toBe('waits for an approval')
    expect(waits('started')).toBe('was started')
    expect(waits('started', { child: 'clerk' })).toBe(`is the work of run ${child}`)
    expect(waits('in_doubt')).toBe('was started, and no result was recorded')
    expect(waits('deferred', { deferred: { externalId: 'job-7' } })).toBe('continues outside as job-7')
    expect(waits('deferred', { child: 'clerk' })).toBe(`waits for run ${child}`)
    for (const status of ['requested', 'to_settle', 'to_ask', 'ready']) {
      expect(waits(status)).toBe('was not started')
    }
    expect(waits('settled')).toBeUndefined()
  })
})
