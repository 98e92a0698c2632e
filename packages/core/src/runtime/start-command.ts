import { ConfigurationError } from '../errors.ts'
import type { StartCommand } from '../vocabulary/command.ts'
import type { UserPart } from '../vocabulary/content.ts'
import type { RunId } from '../vocabulary/ids.ts'
import { defaultRetryPolicy, type Limits } from '../vocabulary/limits.ts'
import type { Agent } from './agent.ts'
import { requireLimits } from './agent-check.ts'
import { messageOf } from './input-message.ts'
import { reachableAgents } from './known-agents.ts'

/** The command that starts a run of an agent, without a past. Throws a `ConfigurationError` for what could not work. */
export function startCommand(
  runId: RunId,
  agent: Agent<unknown>,
  input: string | readonly UserPart[],
  {
    limits: own,
    know,
  }: { readonly limits?: Limits; readonly know: (agent: Agent<unknown>) => Agent<unknown> },
): StartCommand {
  const limits = { ...agent.limits, ...own }
  requireLimits(agent.name, limits)
  if (limits.costMaxUsd !== undefined) requirePrices(agent, limits.costMaxUsd, know)
  return {
    ...{ type: 'start', runId, agent: agent.name, definition: agent.definition, limits },
    retry: { ...defaultRetryPolicy, ...agent.retry },
    input: messageOf(input),
  }
}

/** Law 9 for money: a budget that nobody could hold is refused before anything is spent. */
function requirePrices(
  agent: Agent<unknown>,
  costMaxUsd: number,
  know: (agent: Agent<unknown>) => Agent<unknown>,
): void {
  for (const { definition } of reachableAgents(agent).map(know)) {
    const { fallbacks = [], summarizer } = definition
    const models = [definition, ...fallbacks, ...(summarizer ? [summarizer] : [])]
    const unknown = models.find(({ price }) => price === undefined)
    if (unknown === undefined) continue
    throw new ConfigurationError(
      `The run is limited to ${costMaxUsd} US dollars, but nobody knows what ${unknown.model.modelId} costs, so the limit could not hold. Give createRuntime a price for it in prices.`,
    )
  }
}
