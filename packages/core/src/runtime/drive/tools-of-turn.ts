import type { RunState } from '../../machine/state/state.ts'
import type { Tool } from '../../ports/tool.ts'
import { ConfigurationError } from '../../vocabulary/errors.ts'
import { listOf } from '../../vocabulary/options/option.ts'
import { answerOf } from '../../vocabulary/options/answer-of.ts'
import type { Agent } from '../agent/agent.ts'
import { requireTools } from '../agent/agent-check.ts'
import { offeredTool } from '../agent/part-check.ts'

/**
 * The tools that agents name turn by turn, with the run's context. Those of the last turn are kept, so that its calls are
 * run by the tools that were offered; a process that takes the run up asks for them again.
 */
export class ToolsOfTurn {
  readonly #context: unknown
  #offered: Map<string, readonly Tool[]> | undefined

  constructor(context: unknown) {
    this.#context = context
  }

  /** The tools of the turn that comes, as a source has them; none of an agent whose tools do not change. */
  next(agent: Agent<unknown>, state: RunState): readonly Tool[] {
    const { toolsInTurn } = agent
    if (toolsInTurn === undefined) return []
    const subject = `tools of the agent ${agent.name}`
    const tools = answerOf(subject, () => toolsInTurn(this.#context, state), listOf(offeredTool))
    requireTools(agent.name, [...agent.tools, ...tools])
    const fixed = tools.find(({ child, handoff }) => child !== undefined || handoff)
    if (fixed) {
      throw new ConfigurationError(
        `${subject}: ${fixed.name} is the work of another agent, which is part of the definition on record. Give the agent a list of tools, or handoffs, for that; a turn may leave some out with prepareTurn.`,
      )
    }
    this.#offered = (this.#offered ?? new Map()).set(agent.name, tools)
    return tools
  }

  /** An agent with the tools of the turn that is under way. */
  within(agent: Agent<unknown>, state: RunState | undefined): Agent<unknown> {
    if (agent.toolsInTurn === undefined || state === undefined) return agent
    const tools = this.#offered?.get(agent.name) ?? this.next(agent, state)
    return { ...agent, toolSource: { tools } }
  }
}
