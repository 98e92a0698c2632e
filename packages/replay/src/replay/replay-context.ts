import { type Agent, type RuntimeEvent, type Tool } from '@tallystick/core'
import { omitUndefined, rulesIn } from '@tallystick/core/kit'
import { type Rules, type TurnChange } from '@tallystick/core/machine'
import { type CallVerdict } from '@tallystick/core/vocabulary'

/** The position of a replay in the record. */
interface Place {
  readonly recorded: readonly RuntimeEvent[]
  readonly from: number
}

/** What a replay has of the context that a run had of its application, which no ledger holds. */
export interface ReplayContext {
  readonly context: unknown
  /** The run had one and the replay has none: what code said with it is taken from the record. */
  readonly isMissing: boolean
}

/** The agent's rules in a replay: its code, or what its code said then. */
export function replayedRules(
  agent: Agent<unknown>,
  { context, isMissing }: ReplayContext,
  place: Place,
): Rules {
  // What the next agent says in a handoff is on record; its instructions are not made again.
  const rules = { ...rulesIn(agent, context), ...omitUndefined({ handOff: agent.rules.handOff }) }
  if (!isMissing) return rules
  const { stopWhen, prepareTurn } = rules
  return {
    ...rules,
    ...(stopWhen && { stopWhen: () => hasStopped(place) }),
    ...(prepareTurn && { prepareTurn: () => changeOf(place) }),
  }
}

/** The agent's tools and policy in a replay: their code, or what it said of each call then. */
export function replayedChecks(
  { tools, approval }: Agent<unknown>,
  { isMissing }: ReplayContext,
  place: Place,
): { readonly tools: readonly Tool[]; readonly approval?: NonNullable<Agent<unknown>['approval']> } {
  if (!isMissing) return { tools, ...omitUndefined({ approval }) }
  return {
    tools: tools.map((tool) => ({
      ...tool,
      check: (_input, { toolCallId }): CallVerdict => verdictOf(toolCallId, place),
    })),
  }
}

/**
 * What `stopWhen` answered. The decision itself records it: it ends the run as `stopped`, with an edit of the history and
 * receipts for input in front at most. Any other event in its place says that the answer was no.
 */
function hasStopped({ recorded, from }: Place): boolean {
  const next = recorded.slice(from).find(({ type }) => type !== 'history_edited' && type !== 'input_settled')
  return next?.type === 'run_finished' && next.reason === 'stopped'
}

/**
 * What `prepareTurn` answered, as the next model call records it. Where a limit is met before the call, no event says the
 * answer of then: that of the call after it is taken.
 */
function changeOf({ recorded, from }: Place): TurnChange | undefined {
  const next = recorded.slice(from).find(({ type }) => type === 'model_call_started')
  if (next?.type !== 'model_call_started') return undefined
  const { model, toolChoice, change } = next
  return { ...change, model, toolChoice }
}

/** What the tool or the policy said of a call: `tool_requests_collected`, which ends the same decision, records it. */
function verdictOf(toolCallId: string, { recorded, from }: Place): CallVerdict {
  const rest = recorded.slice(from)
  const collected = rest.find(({ type }) => type === 'tool_requests_collected')
  if (collected?.type !== 'tool_requests_collected') return { kind: 'run' }
  // What a guardrail stopped, the tool itself would have let run.
  const isStopped = rest
    .slice(0, rest.indexOf(collected))
    .some(
      (event) =>
        event.type === 'guardrail_tripped' && event.toolCallId === toolCallId && event.action === 'block',
    )
  const { refusal, plan, reason } = collected.calls.find((call) => call.toolCallId === toolCallId) ?? {}
  if (refusal && !isStopped) return { kind: 'refuse', ...refusal } as CallVerdict
  return plan === 'ask' ? { kind: 'ask', ...omitUndefined({ reason }) } : { kind: 'run' }
}
