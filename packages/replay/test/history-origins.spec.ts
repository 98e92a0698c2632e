import type { Message, RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleMessage, sampleRunId } from '@tallystick/testkit'
import type { EventType } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { explainAttempts, HistoryOrigins, matchAttempt } from '../src/explain.ts'

const facts = sampleFacts(sampleRunId(1))
const event = (type: EventType, seq: number, more: object = {}): RuntimeEvent =>
  ({ ...facts[type], ...more, seq }) as unknown as RuntimeEvent
const says = sampleMessage
const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(says) as [Message, Message, Message, Message]

/** What is known after these events, each with the history after it where it changed that. */
function followed(...steps: readonly (readonly [RuntimeEvent, (readonly Message[])?])[]): HistoryOrigins {
  const origins = new HistoryOrigins()
  for (const [step, messages] of steps) origins.follow(step, messages)
  return origins
}
/** Each message by the numbers of its events. */
const seqs = ({ origins }: HistoryOrigins): unknown => origins.map((origin) => origin.seqs)
const begun = [event('input_received', 2), [a]] as const

describe('a message of a history', () => {
  it('that was said comes from the parts of its last attempt', () => {
    const known = followed(
      begun,
      [event('model_call_started', 3)],
      [event('assistant_text_delta', 4)],
      [event('model_stream_failed', 5)],
      [event('model_call_started', 6, { attempt: 2 })],
      [event('assistant_started', 7)],
      ...([8, 9, 10] as const).map((seq, index) => {
        const type = (['assistant_reasoning_delta', 'assistant_text_delta', 'tool_input_delta'] as const)[
          index
        ]
        return [event(type ?? 'tool_input_delta', seq)] as const
      }),
      [event('tool_request_ready', 11)],
      [event('usage_updated', 12)],
      [event('assistant_message_finished', 13), [a, b]],
    )
    expect(seqs(known)).toEqual([[2], [8, 9, 10, 11, 13]])
  })

  it('of results comes from them, and from guardrails that changed them', () => {
    const trip = (seq: number, on: string, action: string) =>
      [event('guardrail_tripped', seq, { on, action })] as const
    const known = followed(
      begun,
      ...[trip(3, 'output', 'replace'), trip(4, 'tool_input', 'replace'), trip(5, 'input', 'block')],
      [event('tool_result', 6)],
      ...[
        trip(7, 'tool_output', 'record'),
        trip(8, 'tool_output', 'replace'),
        trip(9, 'tool_output', 'block'),
      ],
      [event('tool_result', 10)],
      [event('tool_results_injected', 11), [a, b]],
      [event('model_call_started', 12)],
      [event('tool_result', 13)],
      [event('tool_results_injected', 14), [a, b, c]],
    )
    expect(seqs(known)).toEqual([[2], [6, 8, 9, 10, 11], [13, 14]])
  })

  it('that waited comes from its input, and from where it was taken', () => {
    const known = followed(
      begun,
      [event('input_received', 3, { receipt: 'x' })],
      [event('input_received', 4, { receipt: 'y' })],
      [event('input_settled', 9, { receipt: 'x' }), [a, b]],
    )
    expect(seqs(known)).toEqual([[2], [3, 9]])
  })

  it('that sums others up comes from the call of a model, if one wrote it, and replaces them', () => {
    const known = followed(
      begun,
      [event('assistant_message_finished', 3), [a, b]],
      [event('compaction_started', 4)],
      [event('context_compacted', 5), [c, b]],
    )
    expect(known.origins).toEqual([
      { message: c, seqs: [4, 5], replaced: [{ message: a, seqs: [2], replaced: [] }] },
      { message: b, seqs: [3], replaced: [] },
    ])
    known.follow(event('context_compacted', 6), [d])
    expect(seqs(known)).toEqual([[6]])
    expect(known.origins[0]?.replaced.map(({ message }) => message)).toEqual([c, b])
    expect(known.dropped).toEqual([])
  })

  it('that was changed comes from what it was, too; one that was removed is dropped', () => {
    const said = ['a', 'b', 'c'].map(says)
    const known = followed([event('history_carried', 2), said])
    const edits = [{ index: 0 }, { index: 1, message: d }]
    known.follow(event('history_edited', 3, { edits }), [d, said[2] as Message])
    expect(known.origins).toEqual([
      { message: d, seqs: [2, 3], replaced: [] },
      { message: said[2], seqs: [2], replaced: [] },
    ])
    expect(known.dropped.map(({ message }) => message)).toEqual([said[0]])
    // What a guardrail puts in the place of a message is that message, changed.
    const replaced = says('…')
    known.follow(event('guardrail_tripped', 4, { on: 'input', action: 'replace' }), [d, replaced])
    expect(seqs(known)).toEqual([
      [2, 3],
      [2, 4],
    ])
    known.follow(event('guardrail_tripped', 5, { on: 'input', action: 'replace' }), [replaced])
    expect([seqs(known), known.dropped.length]).toEqual([[[2, 4]], 2])
  })

  it('that is handed over is the one that says the same', () => {
    const known = followed([event('history_carried', 2), [a, b, c]])
    const [again, other] = [says('a'), says('e')]
    known.follow(event('agent_handed_off', 3), [again, c, other])
    expect(known.origins).toEqual([
      { message: again, seqs: [2], replaced: [] },
      { message: c, seqs: [2], replaced: [] },
      { message: other, seqs: [3], replaced: [{ message: b, seqs: [2], replaced: [] }] },
    ])
  })

  it('stays where an event changes nothing', () => {
    const known = followed(begun, [event('tool_result', 3)])
    expect(known.origins).toEqual([{ message: a, seqs: [2], replaced: [] }])
  })
})

describe('messages that stood there before', () => {
  const before = [a, b, says('a')].map((message, index) => ({ message, seqs: [index], replaced: [] }))

  it('are found once each, word for word only where that is wished', () => {
    const [first, second, third] = [says('a'), says('a'), says('a')]
    const words = matchAttempt(before, [first, b, second, third], { wordForWord: true })
    expect([first, b, second, third].map((message) => words.found.get(message)?.seqs)).toEqual([
      ...[[0], [1], [2], undefined],
    ])
    expect(words.lost).toEqual([])
    expect(words.found.get(second)?.message).toBe(second)
    const same = matchAttempt(before, [first, b], { wordForWord: false })
    expect([same.found.size, same.lost.map(({ seqs: from }) => from)]).toEqual([1, [[0], [2]]])
  })
})

describe('the attempts of a turn', () => {
  it('are known by their events, each until the next begins', () => {
    const started = (attempt: number, seq: number) => event('model_call_started', seq, { attempt })
    const model = facts.model_call_started.model
    const { usage } = facts.usage_updated
    expect(
      explainAttempts([
        event('usage_updated', 1),
        ...[
          started(1, 2),
          event('usage_updated', 3, { costUsd: undefined }),
          event('model_stream_failed', 4),
        ],
        ...[started(2, 5), event('assistant_message_finished', 6, { partial: true })],
        ...[
          started(3, 7),
          event('usage_updated', 8),
          event('assistant_message_finished', 9, { partial: false }),
        ],
        ...[started(4, 10), event('assistant_text_delta', 11)],
      ]),
    ).toEqual([
      { attempt: 1, seq: 2, model, outcome: 'failed', failure: 'overloaded', usage },
      { attempt: 2, seq: 5, model, outcome: 'cut_off' },
      { attempt: 3, seq: 7, model, outcome: 'answered', usage, costUsd: 0.0125 },
      { attempt: 4, seq: 10, model, outcome: 'under_way' },
    ])
    expect(explainAttempts([])).toEqual([])
  })
})
