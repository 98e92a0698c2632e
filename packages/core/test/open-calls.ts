import { computeDigest, type Fact, type Outcome } from '@tallystick/core/vocabulary'
import { given } from '@tallystick/testkit'
import { emptyCallLog, logCall, type CallLog } from '../src/machine/history.ts'
import { nextForCalls } from '../src/machine/next-calls.ts'
import type { Call, ExecutingState } from '../src/machine/state.ts'
import { callId, executing } from './pages.ts'

/** When calls may start. */
export const { at } = given(executing()).state!

/** A state whose calls are these, the n-th of them a read of the tool `look` that may start. */
export function working(calls: readonly Partial<Call>[], more: Partial<ExecutingState> = {}): ExecutingState {
  const names = calls.map(({ name = 'look' }) => name)
  const state = given(executing(names, {}, more.limits)).state as ExecutingState
  return { ...state, at, ...more, calls: state.calls.map((call, index) => ({ ...call, ...calls[index] })) }
}

/** The next action, in short: its kind, and of each fact the type, what came of it, and the call. */
export function next(state: ExecutingState, afterMs = 0): readonly unknown[] {
  const action = nextForCalls(state, state.at + afterMs)
  if (!('facts' in action))
    return [action.kind, ...('wakeAt' in action ? [(action.wakeAt ?? 0) - state.at] : [])]
  return [action.kind, ...action.facts.map(brief)]
}

/** What tells a fact from others. */
export function brief(fact: Fact): string {
  const call = 'toolCallId' in fact ? ` ${String(fact.toolCallId).split('_').at(-1)}` : ''
  if (fact.type === 'tool_result') return `${fact.outcome}${call}`
  if (fact.type === 'limit_reached') return `met ${fact.limit} ${fact.used} of ${fact.max}`
  return `${fact.type}${call}`
}

/** A call that has its result. */
export const settled = (outcome: Outcome = 'success'): Partial<Call> => ({
  ...{ status: 'settled', attempts: 1 },
  result: { toolCallId: callId(1), name: 'look', outcome, content: [] },
})
/** A call that runs. */
export const started = { status: 'started', attempts: 1 } as const
/** A call that a process left running. */
export const doubtful = { status: 'in_doubt', attempts: 1 } as const
/** What the calls of one tool and input have answered before. */
export function answers(input: object, ...texts: readonly string[]): CallLog {
  return texts.reduce<CallLog>(
    (log, text) =>
      logCall(log, {
        ...{
          toolCallId: callId(9),
          name: 'look',
          inputDigest: computeDigest(input as never),
          resultDigest: text,
        },
        result: {
          toolCallId: callId(9),
          name: 'look',
          outcome: 'success',
          content: [{ type: 'text', text }],
        },
      }),
    emptyCallLog,
  )
}
