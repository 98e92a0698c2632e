import { ConfigurationError } from '../errors.ts'
import type { AgentDefinition } from '../vocabulary/agent-definition.ts'
import type { ModelRef } from '../vocabulary/content.ts'
import type { Price } from '../vocabulary/price.ts'
import type { Agent } from './agent.ts'
import { requireAgent } from './agent-check.ts'

/** Says what a model costs; `undefined` where it does not know. */
export type Prices = { readonly [modelId: string]: Price } | ((model: ModelRef) => Price | undefined)

/** The agents that a runtime knows, by the name that the ledger records, with what their models cost. */
export interface KnownAgents {
  /** Takes an agent in. Throws a `ConfigurationError` where another has its name. */
  readonly know: (agent: Agent) => Agent
  readonly named: (name: string) => Agent | undefined
}

/** A runtime's agents; none at first. */
export function knownAgents(prices: Prices): KnownAgents {
  const known = new Map<string, Agent>()
  const know = (agent: Agent): Agent => {
    requireAgent(agent)
    const other = known.get(agent.name)
    if (other && other.definition.digest !== agent.definition.digest) {
      throw new ConfigurationError(
        `Two different agents are named ${agent.name}; a resume could not tell which one a run belongs to. Rename one.`,
      )
    }
    const priced = { ...agent, definition: withPrices(agent.definition, prices) }
    known.set(agent.name, priced)
    return priced
  }
  return { know, named: (name) => known.get(name) }
}

function withPrices(definition: AgentDefinition, prices: Prices): AgentDefinition {
  const priceOf = (model: ModelRef): { price?: Price } => {
    const price = typeof prices === 'function' ? prices(model) : prices[model.modelId]
    return price ? { price } : {}
  }
  const { fallbacks } = definition
  return {
    ...definition,
    ...priceOf(definition.model),
    ...(fallbacks && { fallbacks: fallbacks.map(({ model }) => ({ model, ...priceOf(model) })) }),
  }
}
