import type { Tool, ToolSource } from '../../ports/tool.ts'
import { canonicalJson, type JsonObject } from '../../vocabulary/values/json.ts'
import type { Call, RunState } from '../../machine/state/state.ts'
import type { ToolDefinition } from '../../vocabulary/model/tool-definition.ts'
import { messagesOf } from '../../machine/messages/history.ts'
import { answerOf } from '../../vocabulary/options/answer-of.ts'
import { anyText, listOf, valueThat } from '../../vocabulary/options/option.ts'
import { offeredTool } from '../agent/part-check.ts'

/** What has tools, and may have a source of more. */
interface WithTools {
  readonly name: string
  readonly tools: readonly Tool[]
  readonly toolSource?: ToolSource | undefined
}

/** The tools of an agent's source now that can be offered: whole, and under a name that no other tool of the agent has. */
function sourcedTools({ name: agent, tools, toolSource }: WithTools): readonly Tool[] {
  if (toolSource === undefined) return []
  const names = new Set(tools.map(({ name }) => name))
  const now = answerOf(`tools of the toolSource of the agent ${agent}`, () => toolSource.tools, aList)
  return now.filter((tool) => {
    // A source may be written without a compiler; only `agentTool` and `handoff` make tools that a definition has to know.
    if (offeredTool(tool, '') || tool.child !== undefined || tool.handoff || names.has(tool.name))
      return false
    names.add(tool.name)
    return true
  })
}

// Its tools are looked at one by one: what cannot be offered is left out.
const aList = valueThat('a list, as in [ … ]', Array.isArray)

/** Those that the next turn is offered, as models are shown them. */
export function sourcedDefinitions(
  agent: WithTools,
  { history, sourced }: Pick<RunState, 'history' | 'sourced'>,
): readonly ToolDefinition[] {
  const tools = sourcedTools(agent)
  const { toolSource } = agent
  const turn = {
    messages: () => messagesOf(history),
    before: sourced?.tools.map(({ name }) => name) ?? [],
  }
  const subject = `offered of the toolSource of the agent ${agent.name}`
  const names = toolSource?.offered && answerOf(subject, () => toolSource.offered?.(turn), listOf(anyText))
  const offered = names
    ? [...new Set(names)].flatMap((name) => tools.find((tool) => tool.name === name) ?? [])
    : tools
  return offered.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
}

/**
 * The tool of a call that was checked: of the agent or of its source. A tool of the source counts as gone where it is
 * another one than the model was offered, or has another effect than was checked: no check has allowed that one to run.
 */
export function checkedTool(
  agent: WithTools,
  { name, effect }: Pick<Call, 'name' | 'effect'>,
  { sourced }: Pick<RunState, 'sourced'>,
): Tool | undefined {
  const own = agent.tools.find((tool) => tool.name === name)
  if (own) return own
  const tool = sourcedTools(agent).find((each) => each.name === name)
  const offered = sourced?.tools.find((each) => each.name === name)
  if (tool === undefined || offered === undefined || tool.effect !== effect) return undefined
  return canonicalJson(shownOf(tool)) === canonicalJson(shownOf(offered)) ? tool : undefined
}

function shownOf({ name, description, inputSchema }: ToolDefinition): JsonObject {
  return { name, description, inputSchema }
}

/** All tools of an agent, those of its source included. */
export function toolsNow(agent: WithTools): readonly Tool[] {
  return [...agent.tools, ...sourcedTools(agent)]
}
