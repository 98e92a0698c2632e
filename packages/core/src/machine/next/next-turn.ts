import { ConfigurationError } from '../../vocabulary/errors.ts'
import type { ModelRef } from '../../vocabulary/model/content.ts'
import { anyObject, anyText, fields, listOf, maybe, numberFrom } from '../../vocabulary/options/option.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { Action } from '../state/action.ts'
import { waitBeforeCompaction, compactionBeforeCall, nextWhileCompacting } from './next-context.ts'
import { nextModelCall } from './next-model-call.ts'
import { dueInputChecks } from '../state/due-checks.ts'
import { finish } from './finish-run.ts'
import { modelsOf, namesModel } from '../prompt/model-request.ts'
import { deadlineOf } from '../limits/deadlines.ts'
import { meetLimit } from '../limits/limit-reached.ts'
import { timeLimit } from '../limits/limit-finding.ts'
import { requireShown } from '../messages/pairing.ts'
import { limitReasons, type LimitName } from '../../vocabulary/limits/limits.ts'
import type { ShownChange } from '../../vocabulary/events/event.ts'
import { requireNoPromise, requireOptions } from '../../vocabulary/options/require-options.ts'
import type { Rules, TurnChange } from '../state/rules.ts'
import { isSameSource } from '../messages/sourced-tools.ts'
import type { MetLimit, Reply, RunState } from '../state/state.ts'

/** Law 9: the next model call, or the policy of a limit that prevents it. */
export function nextTurn(state: RunState, reply: Reply | undefined, now: number, rules: Rules): Action {
  const { metLimit } = state
  return (
    nextWhileCompacting(state, now) ??
    nextWhileGuarded(state, now) ??
    (metLimit ? nextAtLimit(state, metLimit, reply, now) : startNextTurn(state, reply, now, rules))
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
  if (reply && requireAnswer(rules.stopWhen?.(state), 'stopWhen', state)) return finish(state, 'stopped')
  const shorter = compactionBeforeCall(state, now, rules)
  if (shorter) return waitBeforeCompaction(state) ?? { kind: 'compact', facts: [shorter] }
  const change = turnChangeOf(state, rules)
  requireShown(change?.messages, `prepareTurn of the agent ${state.agent}`)
  const call = nextModelCall(state, now, { change: { ...change, ...sourcedIn(state, rules) } })
  return 'limit' in call ? meetLimit(state, call) : { kind: 'call_model', facts: [call] }
}

/** The tools of the agent's source, where they are not those of the last turn. */
function sourcedIn(state: RunState, rules: Rules): Pick<ShownChange, 'sourced'> {
  const sourced = rules.sourcedTools?.() ?? []
  return isSameSource(state, sourced) ? {} : { sourced }
}

/** What the agent's code answered. A promise would be taken for the answer: a filter would filter nothing. */
function requireAnswer<T>(answer: T, rule: string, { agent }: RunState): T {
  requireNoPromise(`${rule} of the agent ${agent}`, answer)
  return answer
}

function turnChangeOf(state: RunState, rules: Rules): TurnChange | undefined {
  const change = requireAnswer(rules.prepareTurn?.(state), 'prepareTurn', state)
  if (change == null) return undefined
  requireOptions(`prepareTurn of the agent ${state.agent}`, turnChange, change)
  requireOwnModel(state, change.model)
  return omitUndefined({ ...change })
}

/** A model that the agent's code does not name could be recorded, and never called. */
function requireOwnModel({ agent, definition }: RunState, model: ModelRef | undefined): void {
  if (model === undefined || namesModel(definition, model)) return
  const names = modelsOf(definition)
    .map(({ provider, api, modelId }) => `${provider} ${api} ${modelId}`)
    .join(', ')
  throw new ConfigurationError(
    `prepareTurn of the agent ${agent} names the model ${model.provider} ${model.api} ${model.modelId}, which the agent does not have (${names}). Put it among its fallbacks; a run that is on record continues from there with resume.`,
  )
}

const turnChange = fields<TurnChange>({
  instructions: maybe(anyText),
  tools: maybe(listOf(anyText)),
  toolChoice: maybe(anyObject),
  model: maybe(anyObject),
  messages: maybe(listOf(anyObject)),
  maxOutputTokens: maybe(numberFrom(1)),
})

function nextAtLimit(
  state: RunState,
  { policy, limit }: MetLimit,
  reply: Reply | undefined,
  now: number,
): Action {
  switch (policy) {
    case 'ask':
      return { kind: 'suspend' }
    case 'stop':
      return finish(state, limitReasons[limit])
    case 'finalize':
      return reply?.finalizing ? finish(state, limitReasons[limit]) : closingCall(state, limit, now)
  }
}

/** The call that writes the answer at a limit: made with what was held back for it, or not at all. */
function closingCall(state: RunState, met: LimitName, now: number): Action {
  const call = nextModelCall(state, now, { finalizing: true })
  if (!('limit' in call)) return { kind: 'call_model', facts: [call] }
  const { limit, max } = call
  const detail = `No closing call was made: what is left of ${limit} (${max}) does not pay for one.`
  return finish(state, limitReasons[met], detail)
}
