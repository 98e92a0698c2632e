import type { Action } from './action.ts'
import { beforeCompaction, compactionBeforeCall, whileCompacting } from './controller-context.ts'
import { callModel } from './controller-model.ts'
import { dueInputChecks } from './due-checks.ts'
import { finish } from './ending.ts'
import { limitReasons, meetLimit, reserveCall } from './limit-check.ts'
import { requireShown } from './pairing.ts'
import type { Rules } from './rules.ts'
import type { MetLimit, Reply, RunState } from './state.ts'

/** Law 9: the next model call, unless a limit stands in the way; then what its policy says. */
export function continueOrStop(state: RunState, reply: Reply | undefined, now: number, rules: Rules): Action {
  const { metLimit } = state
  return (
    whileCompacting(state) ??
    whileGuarded(state) ??
    (metLimit ? atLimit(state, metLimit, reply) : nextTurn(state, reply, now, rules))
  )
}

/** Law 8, for guardrails: what they have to look at first, no model is shown. */
function whileGuarded(state: RunState): Action | undefined {
  const isDue = dueInputChecks(state).before.length > 0 && state.metLimit?.policy !== 'ask'
  return isDue ? { kind: 'wait' } : undefined
}

function nextTurn(state: RunState, reply: Reply | undefined, now: number, rules: Rules): Action {
  if (reply && rules.stopWhen?.(state)) return finish(state, 'stopped')
  const shorter = compactionBeforeCall(state, now, rules)
  if (shorter) return beforeCompaction(state) ?? { kind: 'compact', facts: [shorter] }
  const reserved = reserveCall(state, now)
  if ('limit' in reserved) return meetLimit(state, reserved)
  const change = rules.prepareTurn?.(state)
  requireShown(change?.messages, `prepareTurn of the agent ${state.agent}`)
  return { kind: 'call_model', facts: [callModel(state, { outputTokens: reserved.outputTokens, change })] }
}

function atLimit(state: RunState, { policy, limit }: MetLimit, reply: Reply | undefined): Action {
  switch (policy) {
    case 'ask':
      return { kind: 'suspend' }
    case 'stop':
      return finish(state, limitReasons[limit])
    case 'finalize':
      return reply?.finalizing
        ? finish(state, limitReasons[limit])
        : { kind: 'call_model', facts: [callModel(state, { finalizing: true })] }
  }
}
