import { type StartCommand } from '@tallystick/core/internal'
import { describe, expect, it } from 'vitest'
import type { Fact } from '@tallystick/core/vocabulary'
import { sampleFacts, given, sampleMessage, stampFacts } from '@tallystick/testkit'
import { begun, called, callId, executing, runId, startedCall } from './pages.ts'

const streaming = [...begun(), called()]
const here = { turn: 1, attempt: 1 }
const at = stampFacts(runId, streaming).at(-1)!.at

describe('given a run, when a command comes', () => {
  const { definition, retry } = sampleFacts(runId).run_started
  const start: StartCommand = {
    ...{ type: 'start', runId, agent: 'agent', definition, retry, limits: { maxTurns: 3 } },
    input: sampleMessage('Go.'),
  }

  it('for its start, it exists and has its input; a second start is refused', () => {
    given([])
      .when({ ...start, sessionId: 's1', parent: { runId, seq: 3, relation: 'fork' } })
      .then([
        {
          ...{ type: 'run_started', turn: 0, agent: 'agent', definition, limits: { maxTurns: 3 }, retry },
          ...{ sessionId: 's1', parent: { runId, seq: 3, relation: 'fork' } },
        },
        { type: 'input_received', turn: 0, message: sampleMessage('Go.'), delivery: 'start' },
      ])
    given(streaming).when(start).thenRefused('run_exists')
    given([]).when({ type: 'cancel' }).thenRefused('not_supported')
  })

  it('to stop, that is on record once', () => {
    given(streaming)
      .when({ type: 'cancel', by: 'ada', reason: 'enough' })
      .then([{ type: 'cancel_requested', turn: 1, by: 'ada', reason: 'enough' }])
    given([...streaming, { type: 'cancel_requested', turn: 1 }])
      .when({ type: 'cancel' })
      .thenRefused('already_cancelled')
  })

  it('to raise a limit, it is raised, and never lowered', () => {
    const limited = streaming.map((event) =>
      event.type === 'run_started' ? { ...event, limits: { maxTurns: 3 } } : event,
    )
    const raise = { type: 'raise_limit', limit: 'maxTurns', by: 'ada' } as const
    given(limited)
      .when({ ...raise, max: 9 })
      .then([{ type: 'limit_raised', turn: 1, limit: 'maxTurns', max: 9, by: 'ada' }])
    given(limited)
      .when({ ...raise, max: 3 })
      .thenRefused('not_raised')
    given(streaming)
      .when({ ...raise, max: 9 })
      .thenRefused('not_raised')
  })

  it('to resume it, what was in flight is given up first', () => {
    const resume = { type: 'resume', why: 'crash', definition } as const
    const same = given(streaming).state!.definition
    given(streaming)
      .when({ ...resume, definition: same })
      .then([
        { type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [] },
        {
          ...{ type: 'model_stream_failed', ...here, retryAt: at },
          failure: {
            ...{ class: 'interrupted', retryable: true },
            message: 'The process that made this call stopped before the reply was complete.',
          },
        },
      ])
    given([...executing(['look', 'look']), startedCall(2)])
      .when({ ...resume, definition: same })
      .then([{ type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [callId(2)] }])
    const changed = { ...definition, digest: 'another' }
    given(begun())
      .when({ ...resume, why: 'command', definition: changed })
      .then([{ type: 'run_resumed', turn: 0, why: 'command', inDoubt: [], definition: changed }])
  })

  it('anything of a run that is done, that is refused', () => {
    const done: readonly Fact[] = [
      ...begun(),
      { type: 'run_finished', turn: 0, reason: 'turn_limit', turns: 0, toolCalls: 0, usage: {} },
    ]
    const message = sampleMessage('And?')
    for (const command of [
      { type: 'cancel' },
      { type: 'approve', toolCallId: callId(1), by: 'ada' },
      { type: 'deny', toolCallId: callId(1), by: 'ada', reason: 'no' },
      { type: 'raise_limit', limit: 'maxTurns', max: 9, by: 'ada' },
      { type: 'steer', message, receipt: 'r1' },
      { type: 'queue', message, receipt: 'r1' },
      { type: 'resume', why: 'command', definition },
    ] as const) {
      given(done).when(command).thenRefused('run_finished')
    }
    expect(given(done).state).toMatchObject({ phase: 'done', reason: 'turn_limit' })
  })
})
