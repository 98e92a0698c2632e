import type { Tool, ToolSource } from '../../ports/tool.ts'
import type { ToolDefinition } from '../../vocabulary/model/tool-definition.ts'
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

/** The same as models are shown them. */
export function sourcedDefinitions(agent: WithTools): readonly ToolDefinition[] {
  return sourcedTools(agent).map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
}

/** All tools of an agent, those of its source included. */
export function toolsNow(agent: WithTools): readonly Tool[] {
  return [...agent.tools, ...sourcedTools(agent)]
}
