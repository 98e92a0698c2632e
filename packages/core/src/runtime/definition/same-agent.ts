import type { Agent } from '../agent/agent.ts'
import { isAgentTool } from './agent-tool.ts'

/**
 * Whether two agents are one that was made twice: they say the same, and what runs for them is the same code. A resume
 * may then take either.
 */
export function isSameAgent(one: Agent<unknown>, other: Agent<unknown>): boolean {
  if (one.definition.digest !== other.definition.digest) return false
  const [mine, theirs] = [codeOf(one), codeOf(other)]
  return mine.length === theirs.length && mine.every((part, index) => part === theirs[index])
}

/** Returns the code of an agent, in order. Handoffs are in the definition. */
function codeOf(agent: Agent<unknown>): readonly unknown[] {
  const { model, summarizer, fallbacks, approval, guardrails, tools, rules } = agent
  const bodies = tools.filter(({ handoff }) => handoff === undefined)
  return [
    model,
    summarizer,
    approval,
    agent.toolSource,
    agent.toolsInTurn,
    rules.stopWhen,
    rules.prepareTurn,
    rules.compaction?.summarize,
    ...fallbacks,
    ...guardrails.map(({ check }) => check),
    ...bodies.map((tool) => (isAgentTool(tool) ? tool.agent : tool)),
  ]
}
