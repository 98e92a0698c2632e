import type { Outcome, ResultPart } from '../events/content.ts'
import type { Fact, FactOf } from '../events/event.ts'
import { toResultFact } from './call-limits.ts'
import { toBackgroundName, toTextContent, toToolStarted } from './calls.ts'
import { getDeadline, getGraceEnd } from './limits.ts'
import { isHeldWrite, isRerun } from './retry.ts'
import { type Action, recordFacts, waitUntil } from './rules.ts'
import type { Call, ExecutingState, RunState } from './state.ts'

/** How work in the background ended. */
interface Ending {
  readonly outcome: Outcome
  readonly content: readonly ResultPart[]
  /** The form for the model, if it is another. */
  readonly shown?: readonly ResultPart[]
  readonly durationMs?: number
  readonly error?: string
}

/** The end of work in the background, with the message that the model reads. */
export function endInBackground(
  { turn }: RunState,
  { toolCallId, name, attempts: attempt }: Call,
  { shown, ...ending }: Ending,
): FactOf<'background_ended'> {
  const text = `(Not a message of the user: this is the result of ${toBackgroundName(toolCallId)}, a call of ${name}. It ended as ${ending.outcome}.)`
  const parts = [{ type: 'text' as const, text }, ...(shown ?? ending.content)]
  return {
    type: 'background_ended',
    turn,
    toolCallId,
    name,
    attempt,
    ...ending,
    message: { role: 'user', parts },
  }
}

/** The handles of calls that have started in the background: the result of each that the turn goes on with. */
export function handOut(state: ExecutingState): readonly Fact[] {
  return state.calls.flatMap((call) => {
    if (call.status !== 'started' || call.background === undefined || call.recorded !== undefined) return []
    const text = `It has started, as ${toBackgroundName(call.toolCallId)}. Go on: its result comes as a message when it is there.`
    return [{ ...toResultFact(state, call, 'success', text), background: true as const }]
  })
}

/** What becomes of work in the background whose process has died: it is started again where its tool allows that, or has ended. */
export function nextForBackground(state: RunState): Action | undefined {
  const doubtful = state.background?.filter(({ status }) => status === 'in_doubt') ?? []
  const facts = doubtful.map((call): Fact => {
    const { toolCallId } = call
    if (isRerun(call) && !isHeldWrite(state, call) && !state.cancel)
      return toToolStarted(state.runId, call, { turn: state.turn, toolCallId })
    return endInBackground(state, call, { outcome: 'interrupted', content: toTextContent('interrupted') })
  })
  return recordFacts('run_tools', facts)
}

/**
 * The end of a run beside which work goes on. An answered run waits for that which its tool says to wait for, as long as it has time; a
 * cancelled one gives it the grace time. What has not ended then is given up: its result, which no model reads, says so.
 */
export function endBesideBackground(
  state: RunState,
  end: Extract<Action, { readonly facts: readonly Fact[] }>,
  now: number,
): Action {
  const { background = [], cancel } = state
  if (background.length === 0) return end
  const last = end.facts.at(-1)
  const isAnswered = last?.type === 'run_finished' && last.reason === 'answered'
  const isAwaited = isAnswered && background.some((call) => call.background === 'wait')
  const until = cancel ? getGraceEnd(state, cancel.at) : isAwaited ? getDeadline(state) : now
  const wait = waitUntil(until, now)
  if (wait) return wait
  const outcome = cancel ? 'cancelled' : isAwaited ? 'timed_out' : 'interrupted'
  const text = cancel
    ? undefined
    : 'The run ended before this work in the background did, and did not wait for it. It may have had an effect all the same.'
  const left = background.map((call): Fact => {
    const content = toTextContent(outcome, text)
    const { message: _unread, ...fact } = endInBackground(state, call, { outcome, content })
    return fact
  })
  return { ...end, facts: [...left, ...end.facts] }
}
