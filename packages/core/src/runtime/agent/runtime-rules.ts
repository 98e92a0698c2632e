import { type AgentDefinition, digested } from '../../events/agent-definition.ts'
import type { Message } from '../../events/content.ts'
import { anyFunction, listOf, maybe, plainFunction, type OptionChecks } from '../../values/option.ts'
import { omitUndefined } from '../../values/json.ts'
import type { Agent, HandoffTarget, PrepareTurn } from './agent.ts'
import { everyPolicy, type ApprovalPolicy } from './approval-policy.ts'
import { definedGuardrail, guardrail, requireGuardrailNames, type Guardrail } from './guardrail.ts'
import {
  outputUnder,
  recordedOutput,
  someOutputStream,
  type OutputStreamOptions,
} from '../output/output-stream.ts'
import { preparedInTurn } from './prepared-in-turn.ts'

/** Options of a runtime that apply to every agent that it drives, beside the agent's own. */
export interface RuntimeRules {
  /**
   * Decides about each call of every agent that this runtime drives, including agents that take a conversation over
   * and agents that work as tools, which may have an `approval` of their own. The stricter of both decides.
   */
  readonly approval?: ApprovalPolicy | undefined
  /** Guardrails of every agent, which check before its own. */
  readonly guardrails?: readonly Guardrail[] | undefined
  /** What the next agent sees of the past in a handoff that has no `filter` of its own. */
  readonly handoffFilter?: ((messages: readonly Message[]) => readonly Message[]) | undefined
  /** Changes each turn of every agent, after the agent's own `prepareTurn`: it gets the request that this returned. */
  readonly prepareTurn?: PrepareTurn | undefined
  /** Changes the text of every agent's replies before subscribers see it, after the agent's own. */
  readonly outputStream?: OutputStreamOptions | undefined
}

/** Checks of these options. */
export const someRules: OptionChecks<RuntimeRules> = {
  approval: maybe(anyFunction),
  guardrails: maybe(listOf(guardrail)),
  handoffFilter: maybe(plainFunction),
  prepareTurn: maybe(anyFunction),
  outputStream: maybe(someOutputStream),
}

/** An agent with the rules of a runtime, as that runtime drives it: for a replay, too. */
export function underRules<Output>(agent: Agent<Output>, rules: RuntimeRules): Agent<Output> {
  const { approval, guardrails = [], handoffFilter } = rules
  const outputStream = outputUnder(agent.outputStream, rules.outputStream)
  const prepareTurn = preparedInTurn(agent.rules.prepareTurn, rules.prepareTurn)
  const all = [...guardrails, ...agent.guardrails]
  requireGuardrailNames(agent.name, all)
  return {
    ...agent,
    ...omitUndefined({ approval: everyPolicy(approval, agent.approval), outputStream }),
    guardrails: all,
    definition: withOutput(withGuardrails(agent.definition, guardrails), rules.outputStream && outputStream),
    handoffs: agent.handoffs.map((target) => withFilter(target, handoffFilter)),
    rules: { ...agent.rules, ...omitUndefined({ prepareTurn }) },
  }
}

function withGuardrails(definition: AgentDefinition, guardrails: readonly Guardrail[]): AgentDefinition {
  if (guardrails.length === 0) return definition
  const all = [...guardrails.map(definedGuardrail), ...(definition.guardrails ?? [])]
  return digested({ ...definition, guardrails: all })
}

function withOutput(
  definition: AgentDefinition,
  outputStream: OutputStreamOptions | undefined,
): AgentDefinition {
  const recorded = recordedOutput(outputStream)
  if (recorded === undefined || definition.policy === undefined) return definition
  return digested({ ...definition, policy: { ...definition.policy, outputStream: recorded } })
}

function withFilter(target: HandoffTarget, filter: RuntimeRules['handoffFilter']): HandoffTarget {
  return filter && target.agent && !target.filter ? { ...target, filter } : target
}
