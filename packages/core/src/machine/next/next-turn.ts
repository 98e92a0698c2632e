import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { Action } from '../state/action.ts'
import { waitBeforeCompaction, compactionBeforeCall, nextWhileCompacting } from './next-context.ts'
import { nextModelCall, plannedChoice, plannedOutput } from './next-model-call.ts'
import { dueInputChecks } from '../state/due-checks.ts'
import { finish } from './finish-run.ts'
import { preparedCall, type OfferedCall } from '../prompt/prepared-call.ts'
import { deadlineOf, workDeadline } from '../limits/deadlines.ts'
import { meetLimit, timeLimit } from '../limits/limit-finding.ts'
import { limitReasons, type LimitName } from '../../vocabulary/limits/limits.ts'
import type { ShownChange } from '../../vocabulary/events/event.ts'
import { answerOf } from '../../vocabulary/options/answer-of.ts'
import { trueOrFalse } from '../../vocabulary/options/option.ts'
import type { Rules } from '../state/rules.ts'
import { isSameSource } from '../messages/sourced-tools.ts'
import type { MetLimit, Reply, RunState } from '../state/state.ts'
import { currentModel } from '../state/state-views.ts'

/** Law 9: the next model call, or the policy of a limit that prevents it. */
export function nextTurn(state: RunState, reply: Reply | undefined, now: number, rules: Rules): Action {
  const { metLimit } = state
  return (
    nextWhileCompacting(state, now) ??
    nextWhileGuarded(state, now) ??
    (metLimit ? nextAtLimit(state, metLimit, reply, { now, rules }) : startNextTurn(state, reply, now, rules))
  )
}

/** Law 8, for guardrails: no model sees input that they have not checked. */
function nextWhileGuarded(state: RunState, now: number): Action | undefined {
  const isDue = dueInputChecks(state).before.length > 0 && state.metLimit?.policy !== 'ask'
  if (!isDue) return undefined
  const deadline = deadlineOf(state)
  if (deadline === undefined) return { kind: 'wait' }
  if (now < deadline) return { kind: 'wait', wakeAt: deadline }
  if (state.metLimit === undefined) return meetLimit(state, timeLimit(state, now))
  return finish(state, limitReasons[state.metLimit.limit])
}

function startNextTurn(state: RunState, reply: Reply | undefined, now: number, rules: Rules): Action {
  if (reply && isToStop(state, rules)) return finish(state, 'stopped')
  const shorter = compactionBeforeCall(state, now, rules)
  if (shorter) return waitBeforeCompaction(state) ?? { kind: 'compact', facts: [shorter] }
  const prepared = preparedCall(state, rules, offeredCall(state, sourcedIn(state, rules)))
  if (prepared === 'pending') return waitForTurn(state, now)
  const call = nextModelCall(state, now, prepared)
  return 'limit' in call ? meetLimit(state, call) : { kind: 'call_model', facts: [call] }
}

/** The call of the next turn as the agent's code gets to see it. */
function offeredCall(
  state: RunState,
  { sourced }: Pick<ShownChange, 'sourced'> = {},
  finalizing = false,
): OfferedCall {
  const toolChoice = plannedChoice(state, { finalizing })
  return {
    model: currentModel(state),
    toolChoice,
    ...omitUndefined({ maxOutputTokens: plannedOutput(state), sourced }),
  }
}

/** While the agent's code prepares a turn: it has the time that the run has for its work. */
function waitForTurn(state: RunState, now: number): Action {
  const deadline = workDeadline(state)
  if (deadline === undefined) return { kind: 'wait' }
  return now < deadline ? { kind: 'wait', wakeAt: deadline } : meetLimit(state, timeLimit(state, now))
}

/** The tools of the agent's source, where they are not those of the last turn. */
function sourcedIn(state: RunState, rules: Rules): Pick<ShownChange, 'sourced'> {
  const sourced = rules.sourcedTools?.(state) ?? []
  return isSameSource(state, sourced) ? {} : { sourced }
}

/** Whether the agent's code ends the run. A promise would be taken for a yes, and what forgets to answer would never stop. */
function isToStop(state: RunState, { stopWhen }: Rules): boolean {
  return (
    stopWhen !== undefined &&
    answerOf(`stopWhen of the agent ${state.agent}`, () => stopWhen(state), trueOrFalse)
  )
}

/** When the controller is asked, and the code of the agent that it asks. */
interface Asking {
  readonly now: number
  readonly rules: Rules
}

function nextAtLimit(
  state: RunState,
  { policy, limit }: MetLimit,
  reply: Reply | undefined,
  asking: Asking,
): Action {
  switch (policy) {
    case 'ask':
      return { kind: 'suspend' }
    case 'stop':
      return finish(state, limitReasons[limit])
    case 'finalize':
      return reply?.finalizing ? finish(state, limitReasons[limit]) : finalizingCall(state, limit, asking)
  }
}

/**
 * The call that writes the answer at a limit: made with what was held back for it, or not at all. What the agent's code
 * withholds from the model is withheld from this call, too.
 */
function finalizingCall(state: RunState, met: LimitName, { now, rules }: Asking): Action {
  const prepared = preparedCall(state, rules, offeredCall(state, {}, true))
  if (prepared === 'pending') return waitForClosing(state, met, now)
  const { toolChoice: _none, ...planned } = prepared
  const call = nextModelCall(state, now, { ...planned, finalizing: true })
  if (!('limit' in call)) return { kind: 'call_model', facts: [call] }
  const { limit, max } = call
  const detail = `No closing call was made: what is left of ${limit} (${max}) does not pay for one.`
  return finish(state, limitReasons[met], detail)
}

/** The detail of a run whose closing call its agent's code did not prepare in time. */
export const unpreparedClosing =
  'No closing call was made: prepareTurn did not answer before the time of the run was up.'

function waitForClosing(state: RunState, met: LimitName, now: number): Action {
  const deadline = deadlineOf(state)
  if (deadline === undefined) return { kind: 'wait' }
  if (now < deadline) return { kind: 'wait', wakeAt: deadline }
  return finish(state, limitReasons[met], unpreparedClosing)
}
