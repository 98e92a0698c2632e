import type { Tool, ToolSource } from '../../ports/tool.ts'
import { canonicalJson, type JsonObject } from '../../vocabulary/values/json.ts'
import type { Call, RunState } from '../../machine/state/state.ts'
import type { ToolDefinition } from '../../vocabulary/model/tool-definition.ts'
import { messagesOf } from '../../machine/messages/history.ts'
import { anyText, fields, listOf, maybe } from '../../vocabulary/options/option.ts'
import { requireNoPromise, requireOptions } from '../../vocabulary/options/require-options.ts'
import { offeredTool } from '../agent/part-check.ts'

/** What has tools, and may have a source of more. */
interface WithTools {
  readonly tools: readonly Tool[]
  readonly toolSource?: ToolSource | undefined
}

/** The tools of an agent's source now that can be offered: whole, and under a name that no other tool of the agent has. */
function sourcedTools({ tools, toolSource }: WithTools): readonly Tool[] {
  if (toolSource === undefined) return []
  const names = new Set(tools.map(({ name }) => name))
  return toolSource.tools.filter((tool) => {
    // A source may be written without a compiler; only `agentTool` and `handoff` make tools that a definition has to know.
    if (offeredTool(tool, '') || tool.child !== undefined || tool.handoff || names.has(tool.name))
      return false
    names.add(tool.name)
    return true
  })
}

/** Those that the next turn is offered, as models are shown them. */
export function sourcedDefinitions(
  agent: WithTools & { readonly name: string },
  { history, sourced }: Pick<RunState, 'history' | 'sourced'>,
): readonly ToolDefinition[] {
  const tools = sourcedTools(agent)
  const names = agent.toolSource?.offered?.({
    messages: () => messagesOf(history),
    before: sourced?.tools.map(({ name }) => name) ?? [],
  })
  const subject = `offered of the toolSource of the agent ${agent.name}`
  requireNoPromise(subject, names)
  requireOptions(subject, offeredNames, { names })
  const offered = names
    ? [...new Set(names)].flatMap((name) => tools.find((tool) => tool.name === name) ?? [])
    : tools
  return offered.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
}

const offeredNames = fields<{ readonly names: readonly string[] | undefined }>({
  names: maybe(listOf(anyText)),
})

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
