import { present, type AgentDefinition, type Rules, type RuntimeEvent } from '@tallystick/core'

/** What the agent's code says now, at the prices of then: a cost is never computed again. */
export function pricedAsRecorded(
  now: AgentDefinition,
  recorded: AgentDefinition | undefined,
): AgentDefinition {
  const { price, fallbacks = [], summarizer } = recorded ?? {}
  return {
    ...now,
    ...present({ price }),
    ...(now.fallbacks && {
      fallbacks: now.fallbacks.map((fallback, index) => ({
        ...fallback,
        ...present({ price: fallbacks[index]?.price }),
      })),
    }),
    ...(now.summarizer && { summarizer: { ...now.summarizer, ...present({ price: summarizer?.price }) } }),
  }
}

/** An agent's rules, by which another takes over at the prices that the next handoff on record names. */
export function rulesAsRecorded(rules: Rules, recorded: readonly RuntimeEvent[], from: number): Rules {
  const { handOff } = rules
  if (handOff === undefined) return rules
  return {
    ...rules,
    handOff: (tool, messages) => {
      const taking = handOff(tool, messages)
      const handed = recorded.slice(from).find((event) => event.type === 'agent_handed_off')
      return taking && { ...taking, definition: pricedAsRecorded(taking.definition, handed?.definition) }
    },
  }
}
