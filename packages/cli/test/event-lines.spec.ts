import type { RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleCallId, sampleRunId } from '@tallystick/testkit'
import { deriveChildRunId, type EventOf, type EventType, eventTypes } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { createScreen } from '../src/terminal/paint.ts'
import { formatEvent, isOfInterest, createLedgerPrinter, printEvent } from '../src/view/events.ts'

const runId = sampleRunId(1)
const callId = sampleCallId(runId)

/** The sample of a type, with other fields; `undefined` leaves one out. */
function sample<T extends EventType>(type: T, change: { readonly [K in keyof EventOf<T>]?: unknown } = {}) {
  return {
    ...sampleFacts(runId)[type],
    runId,
    seq: 7,
    at: 0,
    epoch: 2,
    v: 1,
    ...change,
  } as unknown as RuntimeEvent
}

/** What a person sees of an event, with the names of styles around what they are put on. */
function shown(...events: readonly RuntimeEvent[]): string {
  let said = ''
  const paint = (style: string, text: string): string => `<${style} ${text}>`
  const screen = createScreen((text) => (said += text), { paint, cutAt: 40 })
  for (const event of events) printEvent(event, screen)
  return said
}
const note = (text: string): string => `<yellow ! ${text}>\n`

const silent: readonly EventType[] = [
  ...([
    'model_call_started',
    'assistant_started',
    'tool_input_delta',
    'usage_updated',
    'tool_progress',
  ] as const),
  ...(['tool_results_injected', 'guardrails_checked'] as const),
]

const denial = {
  ...{ approved: false, via: undefined, reason: undefined, input: undefined },
  ...{ roles: undefined, standing: undefined },
}

describe('what a person sees of a run', () => {
  it('is nothing of some events, and something of each other', () => {
    expect(eventTypes.filter((type) => shown(sample(type)) === '')).toEqual(
      eventTypes.filter((type) => silent.includes(type)),
    )
  })

  const from = { runId: sampleRunId(0), seq: 3 }
  const started = `run ${runId} of assistant, model sample-1`
  it.each<[RuntimeEvent, string]>([
    [
      sample('run_started'),
      `<dim ${started}, run 1 of session session of ${runId}, forked from run ${from.runId} at event 3>\n`,
    ],
    [sample('run_started', { sessionId: undefined, parent: undefined }), `<dim ${started}>\n`],
    [
      sample('run_started', { sessionId: 's', sessionPlace: 4, parent: { ...from, relation: 'session' } }),
      `<dim ${started}, run 4 of session s>\n`,
    ],
    [
      sample('run_started', {
        sessionId: 's',
        sessionPlace: undefined,
        parent: { ...from, relation: 'child' },
      }),
      `<dim ${started}, run 1 of session s, child of run ${from.runId}>\n`,
    ],
    [
      sample('run_started', { sessionId: undefined, parent: { ...from, relation: 'branch' } }),
      `<dim ${started}, a branch of run ${from.runId} at event 3>\n`,
    ],
    [sample('run_resumed'), note(`resumed (crash) by writer 2, in doubt: ${callId}`)],
    [sample('run_resumed', { inDoubt: [] }), note('resumed (crash) by writer 2')],
    [sample('run_resumed', { inDoubt: ['a', 'b'] }), note('resumed (crash) by writer 2, in doubt: a, b')],
    [
      sample('run_finished'),
      '\n<bold done:> answered (The model answered.), 1 turn, 1 tool call, 120 tokens in, 17 out, $0.0125\n',
    ],
    [
      sample('run_finished', { detail: undefined, costUsd: undefined, turns: 2, toolCalls: 0, usage: {} }),
      '\n<bold done:> answered, 2 turns, 0 tool calls, ? tokens in, ? out\n',
    ],
    [sample('history_carried'), note('2 earlier messages carried over')],
    [sample('history_carried', { missing: 3 }), note('5 earlier messages carried over')],
    [
      sample('history_edited'),
      note('2 earlier messages changed or removed (now: My key is secret.) by ada: A key was in it.'),
    ],
    [
      sample('history_edited', { by: undefined, reason: undefined }),
      note('2 earlier messages changed or removed (now: My key is secret.)'),
    ],
    [
      sample('history_edited', {
        edits: [{ index: 0, message: { role: 'user', parts: [{ type: 'text', text: 'Order two.' }] } }],
        by: 'ada',
        reason: 'what if',
      }),
      note('1 earlier message changed or removed (now: Order two.) by ada: what if'),
    ],
    [sample('input_received'), '<bold > How warm is it in Seoul?>\n'],
    [sample('input_settled'), note('an input was not taken: The run ended before it.')],
    [sample('input_settled', { delivered: true }), ''],
    [
      sample('assistant_text_delta', { replaces: true }),
      `${note('the provider replaced its text so far with this:')}\nLet me look`,
    ],
    [
      sample('tool_request_ready'),
      `<cyan ┌ request> <bold get_weather> <dim ${callId}>\n<cyan │> {"city":\n`,
    ],
    [
      sample('tool_request_ready', { malformed: undefined, input: { city: 'x'.repeat(80) } }),
      `<cyan ┌ request> <bold get_weather> <dim ${callId}>\n<cyan │> {"city":"${'x'.repeat(30)}…\n`,
    ],
    [sample('assistant_message_finished'), note('the reply was cut off here')],
    [sample('assistant_message_finished', { partial: false }), ''],
    [
      sample('model_stream_failed'),
      note(
        'attempt 1 of the model call failed (overloaded): Try again later.; it is tried again, and its text so far is withdrawn',
      ),
    ],
    [
      sample('model_stream_failed', { attempt: 3, retryAt: undefined }),
      note('attempt 3 of the model call failed (overloaded): Try again later.'),
    ],
    [
      sample('tool_requests_collected'),
      note(`the input of ${callId} was changed by guardrails: {"city":"Seoul"}`),
    ],
    [
      sample('tool_requests_collected', {
        calls: [{ toolCallId: callId, plan: 'run', input: { city: 'Seoul' }, repairs: ['one', 'two'] }],
      }),
      note(`the input of ${callId} was repaired (one; two): {"city":"Seoul"}`),
    ],
    [sample('tool_requests_collected', { calls: [{ toolCallId: callId, plan: 'run' }] }), ''],
    [
      sample('approval_requested'),
      note(`get_weather ${callId} needs an approval of 2 people with the role finance: Is the city right?`),
    ],
    [
      sample('approval_requested', { reason: undefined, approvers: [{}, { roles: ['a', 'b'] }] }),
      note(`get_weather ${callId} needs an approval of one person, and of one person with the role a or b`),
    ],
    [
      sample('approval_requested', { reason: undefined, approvers: undefined }),
      note(`get_weather ${callId} needs an approval`),
    ],
    [
      sample('approval_added'),
      note(`${callId} was approved by bob (finance, prompt), and waits for more people: It is.`),
    ],
    [sample('approval_applied'), note(`${callId} runs on the standing approval ${callId} by ada`)],
    [
      sample('approval_withdrawn', { reason: undefined }),
      note(`the standing approval ${callId} was withdrawn by ada`),
    ],
    [
      sample('approval_decided'),
      note(
        `${callId} was approved by ada (finance, prompt): The other city., to run with {"city":"Busan"}, and for later calls with this input until 1970-01-01T01:00:00.000Z`,
      ),
    ],
    [sample('approval_decided', denial), note(`${callId} was denied by ada`)],
    [sample('tool_started'), note(`get_weather works in run ${sampleRunId(77)}`)],
    [sample('tool_started', { child: undefined }), ''],
    [
      sample('tool_started', { child: undefined, attempt: 2 }),
      note(`get_weather ${callId} is started again`),
    ],
    [
      sample('tool_attempt_failed', { at: 1_760_000_000_200 }),
      note(`attempt 1 of get_weather ${callId} failed, and is tried again in 800 ms: Error: 503`),
    ],
    [
      sample('tool_attempt_failed', { at: 1_760_000_000_200, outcome: 'timed_out' }),
      note(`attempt 1 of get_weather ${callId} ended as timed_out, and is tried again in 800 ms: Error: 503`),
    ],
    [sample('tool_deferred'), note(`${callId} continues outside as job-7, and is settled later`)],
    [
      sample('tool_deferred', { receipt: deriveChildRunId(runId, callId) }),
      note(`${callId} waits for run ${deriveChildRunId(runId, callId)}, whose end continues it`),
    ],
    [
      sample('tool_result'),
      `<cyan └ result > <bold get_weather> <dim ${callId}> <green success>, as on record: nothing ran\n  21 °C [image/png]\n  the model read: 21 °C … from the south\n`,
    ],
    [
      sample('tool_result', { reused: undefined, outcome: 'failed', shown: undefined }),
      `<cyan └ result > <bold get_weather> <dim ${callId}> <red failed> in 12 ms\n  21 °C [image/png]\n  the model read: 21 °C, dry, light wind from the south\n`,
    ],
    [
      sample('tool_result', {
        ...{ reused: undefined, durationMs: undefined, projected: undefined, shown: undefined },
        content: [],
      }),
      `<cyan └ result > <bold get_weather> <dim ${callId}> <green success>\n  \n`,
    ],
    [sample('compaction_started'), note('sample-1 sums up 3 older messages')],
    [sample('context_compacted'), note('3 older messages were replaced by a summary')],
    [sample('agent_handed_off'), note('assistant handed over to booking')],
    [
      sample('guardrail_tripped'),
      note('the guardrail secrets tripped on output: replace (A key was cut out.)'),
    ],
    [
      sample('guardrail_tripped', { detail: undefined }),
      note('the guardrail secrets tripped on output: replace'),
    ],
    [sample('output_checked'), note('the answer does not fit its schema: degrees: expected a number')],
    [sample('output_checked', { error: undefined }), note('the answer does not fit its schema')],
    [sample('output_checked', { valid: true }), ''],
    [
      sample('limit_reached'),
      note('the limit maxTurns of 8 is reached: one last model call may write the answer'),
    ],
    [sample('limit_raised'), note('ada raised the limit maxTurns to 12')],
    [sample('cancel_requested'), note('cancelled by ada: Enough.')],
    [sample('cancel_requested', { by: undefined, reason: undefined }), note('cancelled')],
    [sample('feedback_given'), note('ada gave the score 0.5: Half of it is right.')],
    [sample('feedback_given', { score: undefined }), note('ada gave feedback: Half of it is right.')],
    [sample('feedback_given', { note: undefined }), note('ada gave the score 0.5')],
  ])('says it in one line: $type', (event, text) => {
    expect(shown(event)).toBe(text)
  })

  it('streams words as they come, apart from lines', () => {
    const words = (text: string) => sample('assistant_text_delta', { text })
    const events = [
      ...[words(''), words('I '), words('look'), sample('tool_request_ready'), words('So\n'), words('on')],
      ...[sample('assistant_message_finished', { partial: false }), words('Again')],
      sample('assistant_message_finished'),
    ]
    expect(shown(...events)).toBe(
      `\nI look\n${shown(sample('tool_request_ready'))}\nSo\non\n\nAgain\n${note('the reply was cut off here')}`,
    )
    expect(shown(sample('assistant_reasoning_delta'))).toBe('\n<dim Weather.>')
  })

  it('of many runs at once names each as its events follow', () => {
    let said = ''
    const print = createLedgerPrinter({
      write: (text) => (said += text),
      paint: (style, text) => `<${style} ${text}>`,
    })
    const other = sampleRunId(2)
    const handed = (id: typeof runId) => sample('agent_handed_off', { runId: id })
    for (const id of [runId, runId, other, runId]) print(handed(id))
    const line = note('assistant handed over to booking')
    const head = (id: string): string => `<dim ── ${id}>\n`
    expect(said).toBe(`${head(runId)}${line}${line}${head(other)}${line}${head(runId)}${line}`)
    said = ''
    const long = sample('tool_request_ready', { malformed: undefined, input: { city: 'x'.repeat(900) } })
    print(long)
    expect(said).toContain(`<cyan │> {"city":"${'x'.repeat(390)}…\n`)
  })
})

describe('an event in a few words', () => {
  it('is of interest, or only says how something goes', () => {
    expect(eventTypes.filter((type) => !isOfInterest({ type }))).toEqual(
      eventTypes.filter((type) =>
        [...silent, 'assistant_text_delta', 'assistant_reasoning_delta']
          .filter((each) => each !== 'model_call_started')
          .includes(type),
      ),
    )
  })

  it.each<[RuntimeEvent, string]>([
    [sample('run_started'), 'assistant'],
    [sample('run_resumed'), 'with another definition'],
    [sample('run_resumed', { definition: undefined }), ''],
    [sample('history_carried'), ''],
    [sample('history_edited'), '2 messages'],
    [sample('history_edited', { edits: [{ index: 0 }] }), '1 message'],
    [sample('input_received'), 'How warm is it in Seoul?'],
    [sample('input_settled'), ''],
    [
      sample('model_call_started'),
      'sample-1 with its own instructions, tools, modelSettings, parallelToolCalls, maxOutputTokens, messages',
    ],
    [sample('model_call_started', { attempt: 2, change: { sourced: [] } }), 'sample-1 attempt 2'],
    [sample('assistant_message_finished'), 'cut off Let me look'],
    [sample('assistant_message_finished', { partial: false }), 'Let me look'],
    [sample('model_stream_failed'), 'overloaded'],
    [sample('tool_request_ready'), 'get_weather {"city":"Seoul"}'],
    [sample('tool_requests_collected'), 'get_weather: ask with {"city":"Seoul"}, as guardrails made it'],
    [
      sample('tool_requests_collected', {
        calls: [
          { name: 'a', plan: 'run' },
          { name: 'b', plan: 'ask' },
        ],
      }),
      'a: run b: ask',
    ],
    [sample('approval_requested'), 'get_weather of 2 people with the role finance'],
    [sample('approval_added'), 'approved by bob (finance, prompt), waits for more: It is.'],
    [sample('approval_applied'), `by ada in ${callId}`],
    [sample('approval_withdrawn'), `${callId} by ada: Enough.`],
    [
      sample('approval_decided'),
      'approved by ada (finance, prompt): The other city. to run with {"city":"Busan"} for later calls with this input until 1970-01-01T01:00:00.000Z',
    ],
    [sample('approval_decided', denial), 'denied by ada'],
    [sample('tool_started'), 'get_weather'],
    [sample('tool_started', { attempt: 2 }), 'get_weather attempt 2'],
    [sample('tool_deferred'), 'job-7'],
    [sample('tool_attempt_failed'), 'get_weather attempt 1 failed Error: 503'],
    [sample('tool_result'), 'get_weather success (from the record) 21 °C [image/png]'],
    [sample('tool_result', { reused: undefined }), 'get_weather success 21 °C [image/png]'],
    [sample('compaction_started'), 'sample-1 3 messages'],
    [sample('context_compacted'), '3 messages'],
    [sample('agent_handed_off'), 'booking'],
    [sample('guardrail_tripped'), 'secrets output replace'],
    [sample('output_checked'), 'does not fit'],
    [sample('output_checked', { valid: true }), 'fits'],
    [sample('limit_reached'), 'maxTurns 8'],
    [sample('limit_raised'), 'maxTurns 12'],
    [sample('cancel_requested'), 'Enough.'],
    [sample('cancel_requested', { reason: undefined }), ''],
    [sample('feedback_given'), 'ada 0.5 Half of it is right.'],
    [sample('feedback_given', { score: undefined, note: undefined }), 'ada'],
    [sample('run_finished'), 'answered'],
  ])('is its type and what tells it from others: $type', (event, words) => {
    expect(formatEvent(event, 200)).toBe(`${event.type} ${words}`.trim())
    expect(formatEvent(event, 10)).toBe(`${event.type} ${words}`.slice(0, 9) + '…')
  })
})
