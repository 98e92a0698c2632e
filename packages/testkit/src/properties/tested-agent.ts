import type { Agent, Model, ModelRequest, Tool } from '@tallystick/core'
import { isAgentTool } from '@tallystick/core/internal'
import { scriptedModel, type ScriptedReply } from '../doubles/model.ts'
import type { ToolWatch } from './watched-tools.ts'

/** What stands in for the models of an agent, and who watches its tools. */
export interface Stand {
  /** The reply to the next model call, of whichever agent. */
  readonly reply: (request: ModelRequest) => ScriptedReply
  readonly watch: ToolWatch
}

/** More calls of one model than any test makes. */
const MAX_CALLS = 5_000

/**
 * The agent as it is, and every agent that it hands over to or has as a tool, with other models and with tools that are
 * watched. Their definitions are those of the application, so the ledger reads as that of a real run.
 */
export function standIn(agent: Agent<unknown>, stand: Stand): Agent<unknown> {
  const made = new Map<Agent<unknown>, Agent<unknown>>()
  const tools = new Map<Tool, Tool>()
  const replaceTool = (tool: Tool): Tool => {
    const known = tools.get(tool)
    if (known) return known
    const watched = stand.watch.watch(tool)
    const replaced = isAgentTool(tool) ? { ...watched, agent: replace(tool.agent) } : watched
    tools.set(tool, replaced)
    return replaced
  }
  const replace = (own: Agent<unknown>): Agent<unknown> => {
    const known = made.get(own)
    if (known) return known
    const { toolsInTurn, toolSource, model, fallbacks, summarizer } = own
    // Agents may name each other in a circle: whom one hands over to is looked at when it is first needed.
    const replaced: Agent<unknown> = Object.defineProperties({} as Agent<unknown>, {
      ...Object.getOwnPropertyDescriptors(own),
      ...describeFields({
        model: replaceModel(model, stand),
        fallbacks: fallbacks.map((each) => replaceModel(each, stand)),
        ...(summarizer && { summarizer: replaceModel(summarizer, stand) }),
        ...(toolsInTurn && {
          toolsInTurn: (...given: Parameters<typeof toolsInTurn>) => toolsInTurn(...given).map(replaceTool),
        }),
        ...(toolSource && {
          toolSource: {
            ...(toolSource.offered && { offered: toolSource.offered.bind(toolSource) }),
            get tools() {
              return toolSource.tools.map(replaceTool)
            },
          },
        }),
        get tools() {
          return own.tools.map(replaceTool)
        },
        get handoffs() {
          return own.handoffs.map((target) =>
            target.agent ? { ...target, agent: replace(target.agent) } : target,
          )
        },
      } satisfies Partial<Agent<unknown>>),
    })
    made.set(own, replaced)
    return replaced
  }
  return replace(agent)
}

/** A model that the ledger names as the application's own. */
function replaceModel(own: Model, { reply }: Stand): Model {
  const scripted = scriptedModel(
    Array.from({ length: MAX_CALLS }, () => reply),
    own.modelId,
  )
  const stream: Model['stream'] = (...given) => scripted.stream(...given)
  return Object.defineProperties({} as Model, {
    ...Object.getOwnPropertyDescriptors(own),
    // What a class declares of itself is not its own.
    ...describeFields({ provider: own.provider, api: own.api, modelId: own.modelId, stream }),
  })
}

function describeFields(fields: object): PropertyDescriptorMap {
  return Object.getOwnPropertyDescriptors(fields)
}

/** An agent's own tools, and those of every agent that it reaches. */
export function listTools(agent: Agent<unknown>): readonly Tool[] {
  const seen = new Set<Agent<unknown>>()
  const found = new Map<string, Tool>()
  const visit = (own: Agent<unknown>): void => {
    if (seen.has(own)) return
    seen.add(own)
    for (const tool of [...own.tools, ...(own.toolSource?.tools ?? [])]) {
      if (!found.has(tool.name)) found.set(tool.name, tool)
      if (isAgentTool(tool)) visit(tool.agent)
    }
    for (const { agent: next } of own.handoffs) if (next) visit(next)
  }
  visit(agent)
  return [...found.values()]
}
