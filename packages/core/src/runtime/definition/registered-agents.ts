import { ConfigurationError } from '../../values/errors.ts'
import type { AgentDefinition } from '../../events/agent-definition.ts'
import type { ModelRef } from '../../events/content.ts'
import type { Price } from '../../events/usage.ts'
import { deepFreezeOnce } from '../../values/json.ts'
import type { Agent } from '../agent/agent.ts'
import { requireAgent } from '../agent/agent-check.ts'
import { isAgentTool } from './agent-tool.ts'
import { underRules, type RuntimeRules } from '../agent/runtime-rules.ts'
import { handOffRule } from './handoff.ts'
import { checkedPrice, type Prices } from '../agent/price-check.ts'
import { isSameAgent } from './same-agent.ts'

/** The agents that a runtime knows, by the name that the ledger records, with what their models cost. */
export interface AgentRegistry {
  /**
   * Takes an agent in, with all that it may hand over to and that it has as tools. Throws a `ConfigurationError` where
   * another has its name.
   */
  readonly register: (agent: Agent<unknown>) => Agent<unknown>
  readonly find: (name: string) => Agent<unknown> | undefined
  readonly all: () => readonly Agent<unknown>[]
  /** What a model costs, where that is known. */
  readonly priceOf: (model: ModelRef) => Price | undefined
  /** An agent with what its models cost, which need not be known: one fork's own. */
  readonly priced: (agent: Agent<unknown>) => Agent<unknown>
}

/** A runtime's agents; none at first. */
export function agentRegistry(prices: Prices, runtimeRules: RuntimeRules = {}): AgentRegistry {
  const known = new Map<string, Agent<unknown>>()
  const sources = new Map<string, Agent<unknown>>()
  const priced = (agent: Agent<unknown>): Agent<unknown> => {
    requireAgent(agent)
    const own = underRules(agent, runtimeRules)
    const handOff = handOffRule(
      () => own.handoffs,
      (next) => register(next).definition,
    )
    return { ...own, definition: withPrices(own.definition, prices), rules: { ...own.rules, handOff } }
  }
  const register = (agent: Agent<unknown>): Agent<unknown> => {
    requireAgent(agent)
    const { name, definition } = agent
    const other = known.get(name)
    const source = sources.get(name)
    if (other && (other === agent || source === agent || isSameAgent(source ?? other, agent))) return other
    if (other) throw twoOfOneName(name, other.definition.digest === definition.digest)
    const own = priced(agent)
    known.set(name, own)
    sources.set(name, agent)
    // Known before the others are looked at: agents may name each other in a circle.
    for (const next of neighbours(agent)) register(next)
    return own
  }
  return {
    register,
    priced,
    find: (name) => known.get(name),
    all: () => [...known.values()],
    priceOf: (model) => checkedPrice(prices, model),
  }
}

function twoOfOneName(name: string, hasSameDefinition: boolean): ConfigurationError {
  const what = hasSameDefinition ? 'agents of different code' : 'different agents'
  return new ConfigurationError(
    `Two ${what} are named ${name}; a resume could not tell which one a run belongs to, and whose tools are run. Make an agent once and use it for every run, or rename one.`,
  )
}

/** Returns an agent with the rules of a runtime: for a replay, which gets the agents of the run. */
export function withRuntimeRules<Output>(agent: Agent<Output>, rules: RuntimeRules): Agent<Output> {
  const own = underRules(agent, rules)
  const handOff = handOffRule(
    () => own.handoffs,
    (next) => underRules(next, rules).definition,
  )
  return { ...own, rules: { ...own.rules, handOff } }
}

/** The agents that a run of this one may reach: by handoffs, and as tools. */
function neighbours({ handoffs, tools }: Agent<unknown>): readonly Agent<unknown>[] {
  return [
    ...handoffs.flatMap(({ agent }) => (agent ? [agent] : [])),
    ...tools.flatMap((tool) => (isAgentTool(tool) ? [tool.agent] : [])),
  ]
}

/** An agent, and all that may come to work in its runs. */
export function reachableAgents(agent: Agent<unknown>): readonly Agent<unknown>[] {
  return agentsFrom(agent, neighbours)
}

/** An agent, and all that may take the conversation over in its run: without those that have runs of their own. */
export function agentsInRun(agent: Agent<unknown>): readonly Agent<unknown>[] {
  return agentsFrom(agent, ({ handoffs }) =>
    handoffs.flatMap((target) => (target.agent ? [target.agent] : [])),
  )
}

function agentsFrom(
  agent: Agent<unknown>,
  nextOf: (agent: Agent<unknown>) => readonly Agent<unknown>[],
): readonly Agent<unknown>[] {
  const found = new Map<string, Agent<unknown>>()
  const visit = (each: Agent<unknown>): void => {
    if (found.has(each.name)) return
    found.set(each.name, each)
    nextOf(each).forEach(visit)
  }
  visit(agent)
  return [...found.values()]
}

/** Each run of the agent records it: it is copied and frozen once. */
function withPrices(definition: AgentDefinition, prices: Prices): AgentDefinition {
  const priceOf = (model: ModelRef): { price?: Price } => {
    const price = checkedPrice(prices, model)
    return price ? { price } : {}
  }
  const { fallbacks, summarizer } = definition
  return deepFreezeOnce({
    ...definition,
    ...priceOf(definition.model),
    ...(fallbacks && { fallbacks: fallbacks.map((each) => ({ ...each, ...priceOf(each.model) })) }),
    ...(summarizer && { summarizer: { ...summarizer, ...priceOf(summarizer.model) } }),
  })
}
