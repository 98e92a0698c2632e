import { type Agent, type RuntimeEvent } from '@tallystick/core'
import { definitionNow, omitUndefined } from '@tallystick/core/kit'
import { type Rules } from '@tallystick/core/machine'
import { type AgentDefinition } from '@tallystick/core/vocabulary'

/** What an agent tells its models in a replay, of what its code says today and what is on record. */
export type DefinitionFields = (
  now: AgentDefinition,
  recorded: AgentDefinition | undefined,
) => AgentDefinition

/** What the agent's code says now, at the prices of then: a cost is never computed again. */
export const currentFields: DefinitionFields = (now, recorded) => {
  const { price, fallbacks = [], summarizer } = recorded ?? {}
  return {
    ...now,
    ...omitUndefined({ price }),
    ...(now.fallbacks && {
      fallbacks: now.fallbacks.map((fallback, index) => ({
        ...fallback,
        ...omitUndefined({ price: fallbacks[index]?.price }),
      })),
    }),
    ...(now.summarizer && {
      summarizer: { ...now.summarizer, ...omitUndefined({ price: summarizer?.price }) },
    }),
  }
}

/** What is on record, whatever the agent's code says now. */
export const recordedFields: DefinitionFields = (now, recorded) => recorded ?? now

/** The progress of a replay, and whose definitions apply. */
export interface FieldsPosition {
  readonly fields: DefinitionFields
  readonly recorded: readonly RuntimeEvent[]
  readonly from: number
}

/** An agent's rules, by which another takes over in the words that the next handoff on record has. */
export function rulesAsRecorded(
  rules: Rules,
  { handoffs }: Agent<unknown>,
  { fields, recorded, from }: FieldsPosition,
): Rules {
  const { handOff } = rules
  if (handOff === undefined) return rules
  return {
    ...rules,
    handOff: (tool, messages) => {
      const taking = handOff(tool, messages)
      const handed = recorded.slice(from).find((event) => event.type === 'agent_handed_off')
      if (taking === undefined) return undefined
      const next = handoffs.find((target) => target.tool.name === tool)?.agent
      const then = handed?.definition
      const now =
        next && then ? definitionNow({ ...next, definition: taking.definition }, then) : taking.definition
      return { ...taking, definition: fields(now, then) }
    },
  }
}
