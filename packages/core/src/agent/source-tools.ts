import type { ToolDefinition } from '../events/model-request.ts'
import { readMessages } from '../machine/history.ts'
import type { Call, RunState } from '../machine/state.ts'
import type { Tool, ToolSource } from '../tools/tool.ts'
import { ConfigurationError } from '../values/errors.ts'
import { toCanonicalJson, type JsonObject } from '../values/json.ts'
import { requireAnswer, anyText, listOf, valueThat } from '../values/option.ts'
import { type Agent, offeredTool, requireTools } from './agent.ts'

interface WithTools {
  readonly name: string
  readonly tools: readonly Tool[]
  readonly toolSource?: ToolSource | undefined
}

/** The tools of an agent's source now that can be offered: whole, and under a name that no other tool of the agent has. */
function listOfferableTools({ name: agent, tools, toolSource }: WithTools): readonly Tool[] {
  if (toolSource === undefined) return []
  const names = new Set(tools.map(({ name }) => name))
  const now = requireAnswer(`tools of the toolSource of the agent ${agent}`, () => toolSource.tools, aList)
  return now.filter((tool) => {
    // A source may be written without a compiler; only `agentTool` and `handoff` make tools that a definition has to know.
    if (offeredTool(tool) || tool.child !== undefined || tool.handoff || names.has(tool.name)) return false
    names.add(tool.name)
    return true
  })
}

// Its tools are looked at one by one: what cannot be offered is left out.
const aList = valueThat('a list, as in [ … ]', Array.isArray)

/** Those that the next turn is offered, as models are shown them. */
export function listSourcedDefinitions(
  agent: WithTools,
  { history, sourced }: Pick<RunState, 'history' | 'sourced'>,
): readonly ToolDefinition[] {
  const tools = listOfferableTools(agent)
  const { toolSource } = agent
  const turn = {
    messages: () => readMessages(history),
    before: sourced?.tools.map(({ name }) => name) ?? [],
  }
  const subject = `offered of the toolSource of the agent ${agent.name}`
  const names =
    toolSource?.offered && requireAnswer(subject, () => toolSource.offered?.(turn), listOf(anyText))
  const offered = names
    ? [...new Set(names)].flatMap((name) => tools.find((tool) => tool.name === name) ?? [])
    : tools
  return offered.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
}

/**
 * The tool of a call that was checked: of the agent or of its source. A tool of the source counts as gone where it is
 * another one than the model was offered, or has another effect than was checked: no check has allowed that one to run.
 */
export function findCheckedTool(
  agent: WithTools,
  { name, effect }: Pick<Call, 'name' | 'effect'>,
  { sourced }: Pick<RunState, 'sourced'>,
): Tool | undefined {
  const own = agent.tools.find((tool) => tool.name === name)
  if (own) return own
  const tool = listOfferableTools(agent).find((each) => each.name === name)
  const offered = sourced?.tools.find((each) => each.name === name)
  if (tool === undefined || offered === undefined || tool.effect !== effect) return undefined
  return toCanonicalJson(pickShown(tool)) === toCanonicalJson(pickShown(offered)) ? tool : undefined
}

function pickShown({ name, description, inputSchema }: ToolDefinition): JsonObject {
  return { name, description, inputSchema }
}

/** The tool of an agent with this name, of its own or of its source. */
export function findTool(agent: WithTools, name: string): Tool | undefined {
  const isNamed = (tool: Tool): boolean => tool.name === name
  return agent.tools.find(isNamed) ?? listOfferableTools(agent).find(isNamed)
}

/** All tools of an agent, those of its source included. */
export function listAllTools(agent: WithTools): readonly Tool[] {
  return [...agent.tools, ...listOfferableTools(agent)]
}

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
    const tools = requireAnswer(subject, () => toolsInTurn(this.#context, state), listOf(offeredTool))
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
