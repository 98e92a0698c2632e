// What the command makes of events, without a ledger on disk.
import type { Ledger, RunState, RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleCallId, sampleMessage, sampleRunId } from '@tallystick/testkit'
import { type EventOf, type EventType, eventTypes } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { findForkPlace } from '../src/runs/find-run.ts'
import { StoryBuilder } from '../src/runs/run-story.ts'
import { showEvents } from '../src/verbs/show.ts'
import { formatResult, formatStory } from '../src/view/story-text.ts'

const runId = sampleRunId(1)
const callId = sampleCallId(runId)
const paint = (_style: string, text: string): string => text
const state = { runId, phase: 'done', seq: 120, startedAt: 0 } as unknown as RunState

type Change<T extends EventType> = { readonly [K in keyof EventOf<T>]?: unknown }

/** The sample of a type, with other fields; `undefined` leaves one out. */
function sample<T extends EventType>(type: T, change: Change<T> = {}): EventOf<T> {
  return { ...sampleFacts(runId)[type], runId, seq: 7, at: 0, epoch: 2, v: 1, ...change } as never
}

/** A ledger that holds these events, and finds those of the types that it is asked for. */
function holding(events: readonly RuntimeEvent[]): Ledger {
  async function* find({ types = [], turn }: { types?: readonly EventType[]; turn?: number }) {
    for (const event of events) {
      if (types.includes(event.type) && (turn === undefined || event.turn === turn)) yield event
    }
  }
  async function* read() {
    yield* events
  }
  return { find, read } as unknown as Ledger
}

async function storyOf(...events: readonly RuntimeEvent[]) {
  const builder = new StoryBuilder()
  for (const event of events) builder.follow(event)
  return await builder.end(holding(events))
}

/** A turn that asks for one call, and what comes of it. */
const turn = (
  number: number,
  given: { readonly parts?: readonly object[]; readonly text?: string } = {},
): readonly RuntimeEvent[] => {
  const toolCallId = `call_${number}` as never
  const call = { type: 'tool_call', toolCallId, name: 'look', input: { at: number } }
  const at = { turn: number, at: number * 1_000 }
  const content = [{ type: 'text', text: given.text ?? 'none' }]
  return [
    sample('model_call_started', { ...at, seq: number * 10 }),
    sample('tool_request_ready', {
      ...at,
      ...call,
      type: 'tool_request_ready',
      malformed: undefined,
      seq: number * 10 + 1,
    }),
    sample('assistant_message_finished', {
      ...at,
      ...{ at: at.at + 500, seq: number * 10 + 2, partial: false, parts: given.parts ?? [call] },
    }),
    sample('tool_requests_collected', {
      ...at,
      seq: number * 10 + 3,
      calls: [{ toolCallId, name: 'look', plan: 'run' }],
    }),
    sample('tool_result', {
      ...at,
      toolCallId,
      name: 'look',
      seq: number * 10 + 4,
      content,
      reused: undefined,
    }),
  ]
}

describe('the story of a run', () => {
  it('has a part for each event that is more than a step of another one', async () => {
    const kinds: Record<string, string | undefined> = {}
    for (const type of eventTypes) kinds[type] = (await storyOf(sample(type) as RuntimeEvent)).parts[0]?.kind
    const notes: readonly EventType[] = [
      ...(['run_resumed', 'run_finished', 'history_edited', 'input_settled', 'tool_deferred'] as const),
      ...(['compaction_started', 'context_compacted', 'agent_handed_off', 'guardrail_tripped'] as const),
      ...(['output_checked', 'limit_reached', 'limit_raised', 'cancel_requested'] as const),
      'feedback_given',
      ...(['schedule_set', 'schedule_fired', 'background_ended', 'session_edited'] as const),
      ...(['approval_added', 'approval_applied', 'approval_withdrawn'] as const),
    ]
    expect(kinds).toEqual({
      ...Object.fromEntries(eventTypes.map((type) => [type, notes.includes(type) ? 'note' : undefined])),
      ...{ input_received: 'input', history_carried: 'history', tool_requests_collected: 'calls' },
      ...{ assistant_message_finished: 'reply', model_stream_failed: 'failed' },
    })
  })

  it('says how long each reply took, and from which event on', async () => {
    const { parts } = await storyOf(...turn(3))
    expect(parts).toMatchObject([
      { kind: 'reply', fromSeq: 30, toSeq: 32, at: 3_500, tookMs: 500, turn: 3 },
      { kind: 'calls', fromSeq: 33, toSeq: 34, calls: [{ toolCallId: 'call_3', outcome: 'success' }] },
    ])
    const [alone] = (await storyOf(sample('assistant_message_finished', { at: 9 }))).parts
    expect(alone).toMatchObject({ fromSeq: 7, tookMs: 0 })
  })

  it('has what a failed attempt said, unless its reply was kept', async () => {
    const said = (attempt: number, text: string) => sample('assistant_text_delta', { attempt, text })
    const failed = sample('model_stream_failed', { seq: 9 })
    const events = [
      said(1, 'I '),
      said(2, 'You '),
      said(1, 'go'),
      sample('tool_request_ready', { malformed: undefined }),
    ]
    expect((await storyOf(...events, failed)).parts[0]).toMatchObject({
      ...{ kind: 'failed', attempt: 1, withdrawn: 'I go', withdrawnCalls: [{ toolCallId: callId }] },
      retryAt: 1_760_000_002_000,
    })
    const kept = (change: Change<'assistant_message_finished'>) =>
      sample('assistant_message_finished', change)
    const withdrawnOf = async (reply: RuntimeEvent) =>
      (await storyOf(...events, failed, reply)).parts.find(({ kind }) => kind === 'failed')
    expect(await withdrawnOf(kept({}))).toMatchObject({ withdrawn: '', withdrawnCalls: [] })
    expect(await withdrawnOf(kept({ attempt: 2 }))).toMatchObject({ withdrawn: 'I go' })
    expect(await withdrawnOf(kept({ turn: 2 }))).toMatchObject({ withdrawn: 'I go' })
    const last = await storyOf(...events, sample('model_stream_failed', { retryAt: undefined }))
    expect(last.parts[0]).not.toHaveProperty('retryAt')
  })

  const shown = async (whole: boolean, ...events: readonly RuntimeEvent[]) =>
    formatStory(await storyOf(...events), { paint, state, history: [], whole })
  const heads = (text: string): readonly string[] =>
    text.split('\n').flatMap((line) => /^(assistant|tool|turns [\d-]+) /.exec(line)?.[1] ?? [])

  it('shows turns that did the same as one, from three on', async () => {
    const [one, two, three, four] = [turn(1), turn(2), turn(3), turn(4)]
    expect(heads(await shown(false, ...one, ...two, ...three, ...four))).toEqual(['turns 1-4'])
    expect(heads(await shown(false, ...one, ...two))).toEqual(['assistant', 'tool', 'assistant', 'tool'])
    expect(heads(await shown(true, ...one, ...two, ...three))).toHaveLength(6)
    expect(await shown(false, ...one, ...two, ...three)).toBe(
      [
        'turns 1-3 (turn 3, events 10-34, 1970-01-01T00:00:03.000Z)',
        '    look × 3; all success; at: 1, 2, 3',
        '    result each time: none',
        '    --turn 1 shows the first of them, --whole all of them.',
        '\n',
      ].join('\n'),
    )
  })

  it.each([
    ['another result', turn(2, { text: 'some' })],
    [
      'words beside the call',
      turn(2, {
        parts: [
          { type: 'text', text: 'Hm' },
          { type: 'tool_call', toolCallId: 'x', input: {} },
        ],
      }),
    ],
    [
      'words after the call',
      turn(2, {
        parts: [
          { type: 'tool_call', toolCallId: 'x', input: {} },
          { type: 'text', text: 'Hm' },
        ],
      }),
    ],
    ['words alone', turn(2, { parts: [{ type: 'text', text: 'Hm' }] })],
    ['no result', turn(2).slice(0, -1)],
    ['a decision', turn(2).toSpliced(4, 0, sample('approval_decided', { turn: 2, toolCallId: 'call_2' }))],
    [
      'a second call',
      turn(2).map((event) =>
        event.type === 'tool_requests_collected'
          ? { ...event, calls: [...event.calls, { ...event.calls[0], toolCallId: 'call_1' }] as never }
          : event,
      ),
    ],
  ])('shows turns apart where one of them had %s', async (_, odd) => {
    const story = await storyOf(...turn(1), ...odd, ...turn(3), ...turn(4))
    const text = formatStory(story, {
      paint,
      state: { ...state, calls: [] } as never,
      history: [],
      whole: false,
    })
    expect(heads(text)).toEqual(Array.from({ length: 4 }, () => ['assistant', 'tool']).flat())
  })
})

describe('how a call ended', () => {
  const call = {
    toolCallId: callId,
    name: 'pay',
    turn: 1,
    attempt: 1,
    requested: { usd: 5 },
    requestedSeq: 3,
  }
  const ended = {
    outcome: 'success' as const,
    content: [{ type: 'text' as const, text: 'paid\nwell' }],
    resultSeq: 9,
  }
  const decision = { seq: 5, at: 0, approved: true, by: 'ann' }

  it.each<[string, object, readonly string[]]>([
    ['open', {}, [`╎ open    pay ${callId} has no result yet`]],
    ['whole', ended, [`└ result  pay ${callId} success, event 9`, '    paid', '    well']],
    [
      'timed',
      { ...ended, durationMs: 1_500 },
      [`└ result  pay ${callId} success in 1.5 s, event 9`, '    paid', '    well'],
    ],
    [
      'from the record',
      { ...ended, durationMs: 1_500, reused: callId },
      [`└ result  pay ${callId} success, as on record: nothing ran, event 9`, '    paid', '    well'],
    ],
    [
      'guarded',
      { ...ended, guarded: { usd: 4 }, guardedSeq: 4 },
      [
        `└ result  pay ${callId} success, event 9`,
        '    asked for  {"usd":5}',
        '    guarded    {"usd":4}, event 4',
        '    paid',
        '    well',
      ],
    ],
    [
      'approved with another input',
      { ...ended, decision: { ...decision, via: 'prompt', reason: 'too dear' }, executed: { usd: 3 } },
      [
        `└ result  pay ${callId} success, event 9`,
        ...['    asked for  {"usd":5}', '    approved   by ann (prompt), event 5: too dear'],
        ...['    ran with   {"usd":3}', '    paid', '    well'],
      ],
    ],
    [
      'denied, and open',
      { decision: { ...decision, approved: false } },
      [
        `╎ open    pay ${callId} has no result yet`,
        '    asked for  {"usd":5}',
        '    denied     by ann, event 5',
      ],
    ],
  ])('is shown with what was decided: %s', (_, more, lines) => {
    expect(formatResult({ ...call, ...more }, paint, undefined)).toBe(
      lines.map((line) => `${line}\n`).join(''),
    )
  })

  it('names what an open call waits for', () => {
    expect(formatResult(call as never, paint, 'waits for an approval')).toBe(
      `╎ open    pay ${callId} waits for an approval\n`,
    )
  })
})

describe('a list of events', () => {
  const listed = async (...events: readonly RuntimeEvent[]) => {
    let text = ''
    await showEvents({ print: async (more) => void (text += more) }, holding(events), { state })
    return text.split('\n').slice(0, -1)
  }

  it('has the number, the time, the turn and the length of each', async () => {
    expect(
      await listed(
        sample('run_started', { seq: 1, turn: 0 }),
        sample('assistant_message_finished', { seq: 2, at: 100, partial: false, parts: [] }),
        sample('model_call_started', { seq: 3, at: 1_500, attempt: 1 }),
        sample('assistant_text_delta', { seq: 4, at: 1_600 }),
        sample('assistant_message_finished', { seq: 115, at: 4_000, partial: false }),
        sample('model_stream_failed', { seq: 116, at: 5_500 }),
        sample('tool_result', { seq: 117, at: -5 }),
        sample('tool_results_injected', { seq: 118 }),
      ),
    ).toEqual([
      '  1  +0 ms                   run_started assistant',
      '  2  +100 ms       turn 1    assistant_message_finished',
      '  3  +1.5 s        turn 1    model_call_started sample-1 with its own instructions, tools, modelSettings, parallelToolCalls, maxOutputTokens, messag…',
      '115  +4.0 s        turn 1    assistant_message_finished Let me look  took 2.5 s',
      '116  +5.5 s        turn 1    model_stream_failed overloaded  took 4.0 s',
      '117  +0 ms         turn 1    tool_result get_weather success (from the record) 21 °C [image/png]  took 12 ms',
      '118  +0 ms         turn 1    tool_results_injected',
    ])
  })

  it('has at most 120 characters of what each says', async () => {
    const [line = ''] = await listed(sample('input_received', { message: sampleMessage('x'.repeat(200)) }))
    expect(line.slice(line.indexOf('input'))).toBe(`input_received ${'x'.repeat(104)}…`)
  })
})

describe('where a fork begins', () => {
  const place = { programName: 'tallystick', ledgerPath: 'x.db' }
  const [first, second] = [`${callId.slice(0, -1)}1`, `${callId.slice(0, -1)}2`]
  const of = (toolCallId: string, seq: number) => [
    sample('tool_started', { toolCallId, seq }),
    sample('tool_result', { toolCallId, seq: seq + 1 }),
  ]
  const events = [
    sample('input_received', { seq: 2 }),
    ...of(first, 5),
    sample('approval_requested', { seq: 8 }),
    sample('input_received', { seq: 9 }),
    ...of(second, 11),
    sample('run_finished', { seq: 20 }),
  ]
  const seqOf = async (needs: object, given: readonly RuntimeEvent[] = events) =>
    (
      await findForkPlace(
        holding(given),
        runId,
        { calls: [], decides: false, replacesInput: false, ...needs },
        place,
      )
    ).atSeq

  it('is the named event, or the latest one that the edit allows', async () => {
    expect(await seqOf({ at: 4, calls: ['_1'], decides: true })).toBe(4)
    expect(await seqOf({})).toBe(9)
    expect(await seqOf({ decides: true })).toBe(8)
    expect(await seqOf({ decides: true, replacesInput: true })).toBe(9)
    expect(await seqOf({ decides: true }, events.slice(0, 3))).toBe(2)
    expect(await seqOf({}, [])).toBe(0)
    expect(await seqOf({ calls: ['_2'] })).toBe(11)
    expect(await seqOf({ calls: ['_2', '_1_1_1'] })).toBe(5)
    expect(await seqOf({ calls: ['_2'] }, events.slice(0, -2))).toBe(11)
  })

  it('is refused for a call that was never started, or for several', async () => {
    await expect(seqOf({ calls: ['_9'] })).rejects.toThrow(
      /no tool call whose id ends in _9\. See its calls: /,
    )
    await expect(seqOf({ calls: [''] })).rejects.toThrow(/has started 2 tool calls whose id ends in \./)
  })
})
