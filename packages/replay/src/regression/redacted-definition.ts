import { type Agent } from '@tallystick/core'
import { type TurnChange } from '@tallystick/core/machine'
import { canonicalJson, digested, type AgentDefinition } from '@tallystick/core/vocabulary'
import type { SecretMask } from './secret-mask.ts'

/** What an agent tells its model, without secrets, under a digest of its own. Without any it is the same. */
export function redactedDefinition(definition: AgentDefinition, mask: SecretMask): AgentDefinition {
  const redacted = mask.value(definition)
  return textOf(redacted) === textOf(definition) ? definition : digested(redacted)
}

function textOf(definition: AgentDefinition): string {
  return canonicalJson(definition)
}

/** An agent whose words are without secrets: its definition, and what its rules say. What it decides stays its own. */
export function redactedAgent(agent: Agent<unknown>, mask: SecretMask): Agent<unknown> {
  const { prepareTurn, compaction, handOff, ...rules } = agent.rules
  const { summarize } = compaction ?? {}
  return {
    ...agent,
    definition: redactedDefinition(agent.definition, mask),
    rules: {
      ...rules,
      ...(prepareTurn && {
        prepareTurn: (turn, context): TurnChange | undefined | Promise<TurnChange | undefined> => {
          const answer = prepareTurn(turn, context)
          return answer instanceof Promise ? answer.then((change) => mask.value(change)) : mask.value(answer)
        },
      }),
      ...(compaction && {
        compaction: {
          ...compaction,
          ...(summarize && { summarize: (messages): string => mask.text(summarize(messages)) }),
        },
      }),
      ...(handOff && {
        handOff: (tool, messages) => {
          const taking = handOff(tool, messages)
          if (taking === undefined) return undefined
          return {
            definition: redactedDefinition(taking.definition, mask),
            ...(taking.messages && { messages: mask.value(taking.messages) }),
          }
        },
      }),
    },
  }
}
