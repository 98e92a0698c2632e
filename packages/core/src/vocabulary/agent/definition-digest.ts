import type { AgentDefinition } from './agent-definition.ts'
import { digestOf } from '../values/digest.ts'

/** A definition under the digest of what it says. What models cost is no part of the digest. */
export function digested(definition: Omit<AgentDefinition, 'digest'>): AgentDefinition {
  const { digest: _old, price: _price, fallbacks, summarizer, ...rest } = definition as AgentDefinition
  const body = {
    ...rest,
    ...(fallbacks && { fallbacks: fallbacks.map(({ price: _its, ...fallback }) => fallback) }),
    ...(summarizer && { summarizer: withoutPrice(summarizer) }),
  }
  return { ...definition, digest: digestOf(body) }
}

function withoutPrice<T extends { readonly price?: unknown }>({
  price: _price,
  ...rest
}: T): Omit<T, 'price'> {
  return rest
}

/** A definition with other instructions; the same one where they are as they were. */
export function withInstructions(definition: AgentDefinition, instructions: string): AgentDefinition {
  return definition.instructions === instructions ? definition : digested({ ...definition, instructions })
}
