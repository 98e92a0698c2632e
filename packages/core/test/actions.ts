import type { Limits } from '@tallystick/core'
import type { Fact, LimitName } from '@tallystick/core/vocabulary'
import { given } from '@tallystick/testkit'
import { nextAction } from '../src/machine/next-action.ts'
import type { Rules } from '../src/machine/rules.ts'
import type { MetLimit, RunState } from '../src/machine/state.ts'
import { begun } from './pages.ts'

/** The state of a page, with more to it than the page says. */
export function stateOf<State extends RunState>(page: readonly Fact[], more: Partial<State> = {}): State {
  return { ...given(page).state, ...more } as State
}

/** The next action, in short: its kind, and of each fact what tells it from others; of a wait, for how long. */
export function next(state: RunState, afterMs = 0, rules: Rules = {}): readonly unknown[] {
  const action = nextAction(state, state.at + afterMs, rules)
  if (action.kind === 'wait')
    return ['wait', ...(action.wakeAt === undefined ? [] : [action.wakeAt - state.at])]
  return [action.kind, ...('facts' in action ? action.facts.map(brief) : [])]
}

function brief(fact: Fact): string {
  const call = 'toolCallId' in fact ? ` ${String(fact.toolCallId).split('_').at(-1)}` : ''
  if (fact.type === 'run_finished')
    return `${fact.reason}${fact.detail === undefined ? '' : `: ${fact.detail}`}`
  if (fact.type === 'tool_result') return `${fact.outcome}${call}`
  if (fact.type === 'limit_reached') return `met ${fact.limit}`
  if (fact.type === 'input_settled') return `${fact.receipt} ${fact.delivered ? 'delivered' : fact.why}`
  if (fact.type === 'tool_requests_collected') {
    return `collected ${fact.calls.map(({ refusal }) => refusal?.outcome).join(' ')}`
  }
  if (fact.type !== 'assistant_message_finished') return `${fact.type}${call}`
  return `kept ${fact.stopReason} ${fact.parts.map((part) => ('text' in part ? part.text : part.type)).join(' ')}`
}

/** When the run was asked something. */
export const at = given(begun()).state!.at
/** The run was cancelled when it began. */
export const cancel = { at } as const
/** A guardrail ends the run. */
export const blocked = { on: 'input', guardrail: 'polite', detail: 'rude' } as const
/** A limit was met when the run began. */
export const met = (
  limit: LimitName,
  policy: MetLimit['policy'] = 'stop',
): { readonly metLimit: MetLimit } => ({
  metLimit: { limit, policy, at },
})
/** A run that has ten seconds, and keeps none of them for its answer. */
export const timed: Limits = { maxDurationMs: 10_000, onLimit: 'stop' }
/** When its time is up, in milliseconds after the last event. */
export const upAt = ({ startedAt, waitedMs, at: now }: RunState): number =>
  startedAt + waitedMs + 10_000 - now

/** A run that has called no model yet, under these limits. */
export function idle(limits: Limits = {}, more: Partial<RunState> = {}): RunState {
  return { ...given(begun()).state!, limits, ...more } as RunState
}
