import { describe, expect, it } from 'vitest'
import { evolve, recoverMessage } from '@tallystick/core/machine'
import { given, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { computeDigest, type Fact, type FactOf, type OutsideCommand } from '@tallystick/core/vocabulary'
import type { OutsideCommandOf } from '../src/events/commands.ts'
import { getCommandRules } from '../src/machine/decide.ts'
import { describeChangedInput } from '../src/machine/request.ts'
import type { RunState } from '../src/machine/state.ts'
import { begun, cancelRequested, called, callId, endedCall, executing, runId, startedCall } from './pages.ts'

const streaming = [...begun({ limits: { maxTurns: 3 } }), called()]
const inputDigest = computeDigest({ call: 1 })
const asked: FactOf<'approval_requested'> & { readonly toolCallId: ReturnType<typeof callId> } = {
  ...{ type: 'approval_requested', turn: 1, toolCallId: callId(1), name: 'look', attempt: 1, inputDigest },
}
const waiting = [...executing(['look'], { plan: 'ask', effect: 'write' }), asked]
const decision = { toolCallId: callId(1), by: 'ada', attempt: 1, inputDigest }
const two = [{ count: 2 }]
const waitingForTwo = [
  ...executing(['look'], { plan: 'ask', effect: 'write', approvers: two }),
  { ...asked, approvers: two },
]
const approved: Fact = { type: 'approval_decided', turn: 1, ...decision, approved: true }
const standing = [...waiting, { ...approved, standing: { for: 'session' as const, expiresInMs: 1e12 } }]
const deferred: Fact = { type: 'tool_deferred', turn: 1, toolCallId: callId(1), attempt: 1, receipt: 'job' }
const outside = [...executing(), startedCall(), deferred]
const message = sampleMessage('More.')
const content = [{ type: 'text', text: 'blue' }] as const
const child = { runId: sampleRunId(7), turns: 1, toolCalls: 0, usage: {} }

const [start, input] = begun()
const scheduled: readonly Fact[] = [
  start!,
  { type: 'schedule_set', turn: 0, everyMs: 60_000, missed: 'once', nextAt: 1_760_000_060_000 },
  input!,
]

type Page = readonly Fact[]
/** A name, what was recorded before, a command, and the fact that it leads to. */
type Accepted<C = OutsideCommand> = readonly [string, Page, C, object]

const accepted: {
  readonly [T in OutsideCommand['type']]: readonly Accepted<OutsideCommandOf<T>>[]
} = {
  steer: [
    [
      'steering input',
      streaming,
      { type: 'steer', message, receipt: 'r1' },
      { type: 'input_received', message, delivery: 'steer', receipt: 'r1' },
    ],
  ],
  queue: [
    [
      'queued input',
      streaming,
      { type: 'queue', message, receipt: 'r1' },
      { type: 'input_received', message, delivery: 'queue', receipt: 'r1' },
    ],
  ],
  approve: [
    [
      'an approval',
      waiting,
      { type: 'approve', ...decision },
      { type: 'approval_decided', approved: true, ...decision },
    ],
    [
      'an approval that covers later calls',
      waiting,
      { type: 'approve', ...decision, roles: ['finance'], standing: { for: 'session', expiresInMs: 60_000 } },
      {
        ...{ type: 'approval_decided', approved: true, ...decision, roles: ['finance'] },
        standing: { for: 'session', expiresInMs: 60_000 },
      },
    ],
    [
      'one of two approvals',
      waitingForTwo,
      { type: 'approve', ...decision, roles: ['finance'] },
      { type: 'approval_added', ...decision, roles: ['finance'] },
    ],
    [
      'an approval of another input',
      waiting,
      { type: 'approve', ...decision, via: 'prompt', input: { call: 2 } },
      {
        approved: true,
        via: 'prompt',
        input: { call: 2 },
        note: describeChangedInput('ada', { call: 1 }, { call: 2 }),
      },
    ],
  ],
  withdraw: [
    [
      'the end of a standing approval',
      standing,
      { type: 'withdraw', standing: callId(1), by: 'bob', reason: 'Enough.' },
      { type: 'approval_withdrawn', standing: callId(1), by: 'bob', reason: 'Enough.' },
    ],
  ],
  deny: [
    [
      'a denial',
      waiting,
      { type: 'deny', ...decision, reason: 'No.' },
      { type: 'approval_decided', approved: false, reason: 'No.' },
    ],
  ],
  settle: [
    [
      'a result of a call outside',
      outside,
      { type: 'settle', toolCallId: callId(1), outcome: 'failed', content },
      { type: 'tool_result', name: 'look', outcome: 'failed', content },
    ],
  ],
  cancel: [
    ['a cancel', streaming, { type: 'cancel' }, { type: 'cancel_requested' }],
    [
      'a cancel with who and why',
      streaming,
      { type: 'cancel', by: 'ada', reason: 'Enough.' },
      { by: 'ada', reason: 'Enough.' },
    ],
  ],
  raise_limit: [
    [
      'a raised limit',
      streaming,
      { type: 'raise_limit', limit: 'maxTurns', max: 4, by: 'ada' },
      { type: 'limit_raised', limit: 'maxTurns', max: 4, by: 'ada' },
    ],
  ],
  set_schedule: [
    [
      'a schedule that is paused',
      scheduled,
      { type: 'set_schedule', paused: true, by: 'ada', reason: 'Holiday.' },
      {
        ...{ type: 'schedule_set', everyMs: 60_000, missed: 'once', paused: true },
        ...{ turn: 0, by: 'ada', reason: 'Holiday.' },
      },
    ],
  ],
}

describe('a command from outside', () => {
  it.each<Accepted>(Object.values(accepted).flat())(
    'is on record, and comes back from there: %s',
    (_name, page, command, recorded) => {
      const { decision: decided } = given(page).when(command)
      expect(decided).toMatchObject({ facts: [{ turn: 1, ...recorded }] })
      const { state } = given(page)
      const [fact] = 'facts' in decided ? decided.facts : []
      const [plain] = stampFacts(runId, [fact!], { afterSeq: state!.seq })
      const event = { ...plain!, cause: command.type }
      expect(evolve(state, event).seq).toBe(event.seq)
      expect(recoverMessage(state, { recorded: [event], index: 0 })).toEqual(command)
      const rules = getCommandRules(command.type)
      expect(rules.isRecordedBy(event, command as never)).toBe(true)
      const [other] = stampFacts(runId, [{ type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [] }])
      expect(rules.isRecordedBy(other!, command as never)).toBe(false)
      expect(rules.recover(other!)).toBeUndefined()
    },
  )

  it.each<readonly [OutsideCommand, Fact, boolean]>([
    [
      { type: 'steer', message, receipt: 'r2' },
      { type: 'input_received', turn: 1, message, delivery: 'steer', receipt: 'r1' },
      false,
    ],
    [
      { type: 'queue', message, receipt: 'r1' },
      { type: 'input_received', turn: 1, message, delivery: 'steer', receipt: 'r1' },
      true,
    ],
    [
      { type: 'raise_limit', limit: 'maxTurns', max: 5, by: 'ada' },
      { type: 'limit_raised', turn: 1, limit: 'maxTurns', max: 4, by: 'ada' },
      false,
    ],
    [
      { type: 'raise_limit', limit: 'maxRepeats', max: 4, by: 'ada' },
      { type: 'limit_raised', turn: 1, limit: 'maxTurns', max: 4, by: 'ada' },
      false,
    ],
    [{ type: 'settle', toolCallId: callId(2), outcome: 'success', content }, endedCall(1), false],
    [
      { type: 'approve', ...decision },
      { type: 'approval_decided', turn: 1, ...decision, approved: false },
      false,
    ],
    [
      { type: 'approve', ...decision, by: 'bob' },
      { type: 'approval_decided', turn: 1, ...decision, approved: true },
      false,
    ],
    [
      { type: 'deny', ...decision, toolCallId: callId(2), reason: '' },
      { type: 'approval_decided', turn: 1, ...decision, approved: false },
      false,
    ],
    [
      { type: 'deny', ...decision, reason: '' },
      { type: 'approval_decided', turn: 1, ...decision, approved: false },
      true,
    ],
  ])('%o is recorded by %o: %s', (command, fact, isRecorded) => {
    const [event] = stampFacts(runId, [fact])
    expect(getCommandRules(command.type).isRecordedBy(event!, command as never)).toBe(isRecorded)
  })

  it('is one of a caller only where a caller could have given the result', () => {
    const recovered = (more: object): unknown => {
      const [event] = stampFacts(runId, [endedCall(1, more)])
      return getCommandRules('settle').recover(event!)
    }
    expect(recovered({ outcome: 'cancelled' })).toBeUndefined()
    expect(recovered({ outcome: 'failed', child })).toMatchObject({
      type: 'settle',
      outcome: 'failed',
      child,
    })
    expect(recovered({})).not.toHaveProperty('child')
    const [denied] = stampFacts(runId, [{ type: 'approval_decided', turn: 1, ...decision, approved: false }])
    expect(getCommandRules('deny').recover(denied!)).toMatchObject({ reason: '' })
  })
})

describe('a command that is refused', () => {
  const cancelled = [...streaming, cancelRequested]
  const expiring = [
    ...executing(['look'], { plan: 'ask' }),
    { ...asked, expiresAt: given(waiting).state!.at } as Fact,
  ]
  const doubtful: Page = [
    ...[...executing(['look'], { recovery: 'ask' }), startedCall()],
    { type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [callId(1)] },
    { ...asked, attempt: 2 },
  ]
  const childOutside = [...executing(['look'], { child: 'clerk' }), startedCall(), deferred]
  const settling: Extract<OutsideCommand, { readonly type: 'settle' }> = {
    type: 'settle',
    toolCallId: callId(1),
    outcome: 'success',
    content,
  }
  const raise = (max: number): OutsideCommand => ({ type: 'raise_limit', limit: 'maxTurns', max, by: 'ada' })

  it.each<readonly [string, Page, OutsideCommand, string | undefined]>([
    ['input after a cancel', cancelled, { type: 'steer', message, receipt: 'r1' }, 'cancelled'],
    ['another cancel', cancelled, { type: 'cancel' }, 'already_cancelled'],
    [
      'a decision about a call that is not there',
      waiting,
      { type: 'approve', ...decision, toolCallId: callId(9) },
      'unknown_call',
    ],
    [
      'a decision about a call that does not wait',
      executing(),
      { type: 'deny', ...decision, reason: '' },
      'not_awaiting_approval',
    ],
    [
      'a decision about another input',
      waiting,
      { type: 'approve', ...decision, inputDigest: 'd' },
      'not_awaiting_approval',
    ],
    [
      'a decision about an earlier start',
      doubtful,
      { type: 'approve', ...decision },
      'not_awaiting_approval',
    ],
    [
      'a decision that names no start, about a later one',
      doubtful,
      { type: 'approve', toolCallId: callId(1), by: 'ada' },
      'not_awaiting_approval',
    ],
    [
      'a decision about the start that is asked about',
      doubtful,
      { type: 'approve', ...decision, attempt: 2 },
      undefined,
    ],
    [
      'a decision that names nothing',
      waiting,
      { type: 'approve', toolCallId: callId(1), by: 'ada' },
      undefined,
    ],
    ['a decision that comes too late', expiring, { type: 'approve', ...decision }, 'approval_expired'],
    ['a result of a call that runs', executing(), settling, 'not_deferred'],
    ['a result of a call that is not there', streaming, settling, 'not_deferred'],
    ['a result of what a child run works on', childOutside, settling, 'not_deferred'],
    ['the result of that child run', childOutside, { ...settling, child }, undefined],
    ['a limit that is not higher', streaming, raise(3), 'not_raised'],
    ['a limit that is not there', begun(), raise(3), 'not_raised'],
  ])('%s', (_name, page, command, code) => {
    const { decision: decided } = given(page).when(command)
    expect('refused' in decided ? decided.refused.code : undefined).toBe(code)
  })

  it('raises no limit of a child run above its grant', () => {
    const parent = { runId: sampleRunId(9), seq: 3, relation: 'child', grant: { turns: 5 } } as const
    const state = { ...given(streaming).state!, parent } as RunState
    const decide = (max: number) => getCommandRules('raise_limit').decide(state, raise(max) as never, 0)
    expect(decide(5)).toMatchObject({ facts: [{ max: 5 }] })
    expect(decide(6)).toMatchObject({
      refused: { code: 'not_raised', message: expect.stringContaining('5 of maxTurns; 6 is more') },
    })
  })

  it('is refused again for the same reason, where only the record tells', () => {
    const refusals: { readonly [T in OutsideCommand['type']]: string } = {
      approve: 'not_awaiting_approval',
      withdraw: 'no_standing_approval',
      deny: 'not_awaiting_approval',
      settle: 'not_deferred',
      steer: 'cancelled',
      queue: 'cancelled',
      cancel: 'already_cancelled',
      raise_limit: 'not_raised',
      set_schedule: 'not_scheduled',
    }
    for (const [type, refusal] of Object.entries(refusals)) {
      expect([type, getCommandRules(type as OutsideCommand['type']).usualRefusal]).toEqual([type, refusal])
    }
  })

  it('is not there twice: the same input once more changes nothing, nor does the same input of an approval', () => {
    const steer: OutsideCommand = { type: 'steer', message, receipt: 'r1' }
    const received: Fact = { type: 'input_received', turn: 1, message, delivery: 'steer', receipt: 'r1' }
    given([...streaming, received])
      .when(steer)
      .then([])
    const { decision: decided } = given(waiting).when({ type: 'approve', ...decision, input: { call: 1 } })
    expect('facts' in decided && decided.facts[0]).not.toHaveProperty('input')
  })
})
