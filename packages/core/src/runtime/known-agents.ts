import { ConfigurationError } from '../errors.ts'
import type { AgentDefinition } from '../vocabulary/agent-definition.ts'
import type { ModelRef } from '../vocabulary/content.ts'
import { ownValue } from '../vocabulary/own-value.ts'
import type { Price } from '../vocabulary/price.ts'
import type { Agent } from './agent.ts'
import { requireAgent } from './agent-check.ts'
import { isAgentTool } from './agent-tool.ts'
import { handOffRule } from './handoff.ts'

/** Says what a model costs; `undefined` where it does not know. */
export type Prices = { readonly [modelId: string]: Price } | ((model: ModelRef) => Price | undefined)

/** The agents that a runtime knows, by the name that the ledger records, with what their models cost. */
export interface KnownAgents {
  /**
   * Takes an agent in, with all that it may hand over to and that work for it. Throws a `ConfigurationError` where
   * another has its name.
   */
  readonly know: (agent: Agent<unknown>) => Agent<unknown>
  readonly named: (name: string) => Agent<unknown> | undefined
  /** An agent with what its models cost, which need not be known: one fork's own. */
  readonly priced: (agent: Agent<unknown>) => Agent<unknown>
}

/** A runtime's agents; none at first. */
export function knownAgents(prices: Prices): KnownAgents {
  const known = new Map<string, Agent<unknown>>()
  const sources = new Map<string, Agent<unknown>>()
  const priced = (agent: Agent<unknown>): Agent<unknown> => {
    requireAgent(agent)
    const handOff = handOffRule(
      () => agent.handoffs,
      (next) => know(next).definition,
    )
    return {
      ...agent,
      definition: withPrices(agent.definition, prices),
      rules: { ...agent.rules, handOff },
    }
  }
  const know = (agent: Agent<unknown>): Agent<unknown> => {
    requireAgent(agent)
    const { name, definition } = agent
    const other = known.get(name)
    if (other && other.definition.digest !== definition.digest) {
      throw new ConfigurationError(
        `Two different agents are named ${name}; a resume could not tell which one a run belongs to. Rename one.`,
      )
    }
    if (other && (sources.get(name) === agent || other === agent)) return other
    const own = priced(agent)
    known.set(name, own)
    sources.set(name, agent)
    // Known before the others are looked at: agents may name each other in a circle.
    for (const next of neighbours(agent)) know(next)
    return own
  }
  return { know, priced, named: (name) => known.get(name) }
}

/** The agents that may come to work in a run of this one: those that it hands over to, and those that work for it. */
function neighbours({ handoffs, tools }: Agent<unknown>): readonly Agent<unknown>[] {
  return [
    ...handoffs.flatMap(({ agent }) => (agent ? [agent] : [])),
    ...tools.flatMap((tool) => (isAgentTool(tool) ? [tool.agent] : [])),
  ]
}

/** An agent, and all that may come to work in its runs. */
export function reachableAgents(agent: Agent<unknown>): readonly Agent<unknown>[] {
  const found = new Map<string, Agent<unknown>>()
  const visit = (each: Agent<unknown>): void => {
    if (found.has(each.name)) return
    found.set(each.name, each)
    neighbours(each).forEach(visit)
  }
  visit(agent)
  return [...found.values()]
}

function withPrices(definition: AgentDefinition, prices: Prices): AgentDefinition {
  const priceOf = (model: ModelRef): { price?: Price } => {
    const price = typeof prices === 'function' ? prices(model) : ownValue(prices, model.modelId)
    return price ? { price } : {}
  }
  const { fallbacks, summarizer } = definition
  return {
    ...definition,
    ...priceOf(definition.model),
    ...(fallbacks && { fallbacks: fallbacks.map(({ model }) => ({ model, ...priceOf(model) })) }),
    ...(summarizer && { summarizer: { ...summarizer, ...priceOf(summarizer.model) } }),
  }
}
