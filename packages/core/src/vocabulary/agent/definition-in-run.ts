import { omitUndefined } from '../values/omit-undefined.ts'
import { canonicalJson } from '../values/json.ts'
import { type ModelRef, sameModel } from '../model/content.ts'
import type { AgentDefinition } from './agent-definition.ts'
import type { AgentPolicy } from './agent-policy.ts'
import { digested } from './definition-digest.ts'
import type { GivenModel } from './run-given.ts'

/**
 * The definition of an agent in a run that was given a model: that model in place of the agent's own, which takes over no
 * more where it was a fallback as well. The same definition where nothing changes.
 */
export function definitionInRun(definition: AgentDefinition, given: GivenModel | undefined): AgentDefinition {
  if (given === undefined) return definition
  const { price: _price, maxWebSearches: _searches, fallbacks = [], policy, ...rest } = definition
  const others = fallbacks.filter(({ model }) => !sameModel(model, given.model))
  const { fallbacks: _fallbacks, ...withoutFallbacks } = rest as AgentDefinition
  const changed = digested({
    ...withoutFallbacks,
    model: given.model,
    ...omitUndefined({ price: given.price, maxWebSearches: given.maxWebSearches || undefined }),
    ...(others.length > 0 && { fallbacks: others }),
    ...(policy && { policy: policyInRun(policy, definition, given) }),
  })
  return isEqual(changed, definition) ? definition : changed
}

/** What the adapters of the models that are still called are set to. */
function policyInRun(
  { models = [], ...policy }: AgentPolicy,
  { model, fallbacks = [], summarizer }: AgentDefinition,
  given: GivenModel,
): AgentPolicy {
  const kept = [...fallbacks.map((fallback) => fallback.model), ...(summarizer ? [summarizer.model] : [])]
  const isCalled = (ref: ModelRef): boolean =>
    !sameModel(ref, given.model) && (!sameModel(ref, model) || kept.some((other) => sameModel(other, ref)))
  const pinned = [
    ...((given.options ?? given.additions)
      ? [{ model: given.model, ...omitUndefined({ options: given.options, additions: given.additions }) }]
      : []),
    ...models.filter((each) => isCalled(each.model)),
  ]
  return { ...policy, ...(pinned.length > 0 && { models: pinned }) }
}

function isEqual(one: AgentDefinition, other: AgentDefinition): boolean {
  const [{ digest: _one, ...oneBody }, { digest: _other, ...otherBody }] = [one, other]
  return canonicalJson(oneBody) === canonicalJson(otherBody)
}
