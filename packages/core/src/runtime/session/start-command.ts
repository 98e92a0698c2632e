import { ConfigurationError } from '../../values/errors.ts'
import type { StartCommand } from '../../events/commands.ts'
import type { UserMessage } from '../../events/content.ts'
import type { RunId } from '../../values/ids.ts'
import { definitionInRun, type FallbackModel, type RunGiven } from '../../events/agent-definition.ts'
import { searchesCost } from '../../events/usage.ts'
import { deepFreezeOnce, omitUndefined } from '../../values/json.ts'
import { defaultRetryPolicy, type GivenLimits, type RetryPolicy } from '../../events/limits.ts'
import type { Agent } from '../agent/agent.ts'
import { requireLimits } from '../agent/agent-check.ts'
import { agentsInRun, reachableAgents } from '../definition/registered-agents.ts'
import { definitionIn } from '../definition/run-context.ts'

/** The command that starts a run of an agent, without a past. Throws a `ConfigurationError` for what could not work. */
export function startCommand(
  runId: RunId,
  agent: Agent<unknown>,
  input: UserMessage,
  {
    limits: own,
    defaults,
    given = {},
    register,
    context,
  }: {
    readonly limits?: GivenLimits
    /** Those of the runtime: over the agent's, under the run's. */
    readonly defaults?: GivenLimits
    readonly given?: RunGiven
    readonly register: (agent: Agent<unknown>) => Agent<unknown>
    readonly context: unknown
  },
): StartCommand {
  if (own) requireLimits(agent.name, own)
  const limits =
    own || defaults
      ? { ...agent.limits, ...omitUndefined({ ...defaults }), ...omitUndefined({ ...own }) }
      : agent.limits
  if (limits.maxCostUsd !== undefined) requirePrices(agent, limits.maxCostUsd, { register, given })
  return {
    type: 'start',
    runId,
    agent: agent.name,
    definition: definitionInRun(definitionIn(agent, context), given.givenModel),
    limits,
    retry: retryOf(agent),
    ...given,
    input,
    ...(context !== undefined && { withContext: true as const }),
  }
}

const defaultRetry: RetryPolicy = deepFreezeOnce(defaultRetryPolicy)

function retryOf({ retry }: Agent<unknown>): RetryPolicy {
  return Object.keys(retry).length === 0 ? defaultRetry : { ...defaultRetry, ...retry }
}

/** Law 9 for money: refuses, before anything is spent, a budget for a model without a price. */
function requirePrices(
  agent: Agent<unknown>,
  maxCostUsd: number,
  {
    register,
    given,
  }: { readonly register: (agent: Agent<unknown>) => Agent<unknown>; readonly given: RunGiven },
): void {
  const agentsOfRun = new Set(agentsInRun(agent).map((each) => each.name))
  for (const { name, definition: own } of reachableAgents(agent).map(register)) {
    // Agents that work as tools have runs of their own, with their own models.
    const definition = agentsOfRun.has(name) ? definitionInRun(own, given.givenModel) : own
    const { fallbacks = [], summarizer } = definition
    const models = [definition, ...fallbacks, ...(summarizer ? [summarizer] : [])]
    const unknown = models.find(({ price }) => price === undefined)
    if (unknown !== undefined) {
      throw new ConfigurationError(
        `The run is limited to ${maxCostUsd} US dollars, but ${unknown.model.modelId} has no price, so the limit could not hold. Give createRuntime a price for it in prices.`,
      )
    }
    requireBoundedSearches([definition, ...fallbacks], maxCostUsd)
  }
}

/** Searches that cost money and that nothing bounds could cost any amount within one call. */
function requireBoundedSearches(models: readonly FallbackModel[], maxCostUsd: number): void {
  for (const { model, price, maxWebSearches = 0 } of models) {
    if (price === undefined || searchesCost(price, maxWebSearches) !== Infinity) continue
    throw new ConfigurationError(
      `The run is limited to ${maxCostUsd} US dollars, but its provider may search the web any number of times in one call of ${model.modelId}, at ${price.webSearchUsd} dollars each, so the limit could not hold. Bound the searches: max_uses of the web search tool in providerTools of anthropic, max_tool_calls in extraBody of openai, or maxWebSearches of a model of your own.`,
    )
  }
}
