// The end of a run whose model refused: when the exchange is left out of the history, and what stays said of it.
import { describe, expect, it } from 'vitest'
import { createHistory } from '../src/machine/history.ts'
import { withoutRefused } from '../src/machine/next-action.ts'

const end = { kind: 'finish', facts: [{ type: 'run_finished' }] } as never
const user = { role: 'user', parts: [{ type: 'text', text: 'Hi' }] }
const reply = { role: 'assistant', parts: [] }
const tools = (...outcomes: string[]) => ({
  role: 'tool',
  results: outcomes.map((outcome, place) => ({ name: `t${place}`, outcome })),
})
const reason = 'The model refused this exchange, and would refuse what is asked behind it.'

interface Refused {
  readonly stopReason?: string
  readonly leaveOut?: boolean
  readonly failure?: string
  readonly history?: 'keep' | 'leave_out'
  readonly messages?: readonly object[]
  readonly from?: number
}

function edited({
  stopReason = 'refused',
  leaveOut,
  failure,
  history,
  messages,
  from = 1,
}: Refused): unknown {
  const all = messages ?? [user, user, reply]
  const state = {
    turn: 3,
    exchangeFrom: from,
    history: createHistory(all as never),
    definition: { ...(history && { onRefusal: { history } }) },
    reply: {
      message: { stopReason },
      ...(leaveOut !== undefined && { refusal: { leaveOut } }),
      ...(failure !== undefined && { failure: { class: failure } }),
    },
  }
  return withoutRefused(state as never, end)
}

const leftOut = (edits: readonly object[] = [{ index: 1 }, { index: 2 }]) => ({
  kind: 'finish',
  facts: [{ type: 'history_edited', turn: 3, edits, reason }, { type: 'run_finished' }],
})

describe('a refused exchange', () => {
  it.each<readonly [string, Refused]>([
    ['its vendor asks for that', { leaveOut: true }],
    ['its agent wants that', { history: 'leave_out' }],
    ['its agent wants that, though the vendor does not', { leaveOut: false, history: 'leave_out' }],
    ['the call failed as refused', { stopReason: 'failed', failure: 'refused' }],
    ['its agent wants that of filtered output', { stopReason: 'content_filtered', history: 'leave_out' }],
  ])('is left out of the history where %s', (_why, refused) => {
    expect(edited(refused)).toEqual(leftOut())
  })

  it.each<readonly [string, Refused]>([
    ['nobody asks for that', {}],
    ['its vendor asks for none', { leaveOut: false }],
    ['its agent keeps it', { leaveOut: true, history: 'keep' }],
    ['its agent keeps what failed as refused', { stopReason: 'failed', failure: 'refused', history: 'keep' }],
    ['the call failed otherwise', { stopReason: 'failed', failure: 'server', history: 'leave_out' }],
    ['the output was filtered', { stopReason: 'content_filtered', leaveOut: true }],
    ['the reply is an answer', { stopReason: 'end', leaveOut: true, history: 'leave_out' }],
    ['nothing was said in it', { leaveOut: true, from: 3 }],
  ])('stays where %s', (_why, refused) => {
    expect(edited(refused)).toBe(end)
  })

  it('stays while the run continues', () => {
    const waiting = { kind: 'wait' } as const
    expect(withoutRefused({ reply: { message: { stopReason: 'refused' } } } as never, waiting)).toBe(waiting)
  })

  it('leaves the names of the tools that ran in it in the place of its first message', () => {
    const outcomes = [
      ...['success', 'invalid_input', 'unknown_tool', 'denied', 'repeated', 'limit_reached', 'skipped'],
      ...['failed', 'timed_out', 'cancelled', 'interrupted'],
    ]
    const text =
      '(An exchange stood here that a model refused to go on with, and it was left out. Tools that ran in it: t0 (success), t7 (failed), t8 (timed_out), t9 (cancelled), t10 (interrupted).)'
    const messages = [user, user, reply, tools(...outcomes), reply]
    const message = { role: 'user', parts: [{ type: 'text', text }] }
    expect(edited({ leaveOut: true, messages })).toEqual(
      leftOut([{ index: 1, message }, { index: 2 }, { index: 3 }, { index: 4 }]),
    )
    const none = [user, tools('success'), user, tools('denied')]
    expect(edited({ leaveOut: true, messages: none, from: 2 })).toEqual(leftOut([{ index: 2 }, { index: 3 }]))
  })
})
