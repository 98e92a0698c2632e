import { throwError } from 'rxjs'
import { ConfigurationError } from '../../vocabulary/errors.ts'
import { requireOptions } from '../../vocabulary/options/require-options.ts'
import type { Tool } from '../../ports/tool.ts'
import type { AnyContext } from '../../vocabulary/agent/any-context.ts'
import type { GivenLimits } from '../../vocabulary/limits/limits.ts'
import type { JsonObject } from '../../vocabulary/values/json.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { fields, filledText, maybe, oneOf } from '../../vocabulary/options/option.ts'
import type { ToolEffect } from '../../vocabulary/model/tool-definition.ts'
import type { Agent } from '../agent/agent.ts'
import { definedAgent, someLimits } from '../agent/part-check.ts'

/** How an agent serves as a tool. */
export interface AgentToolOptions {
  /** Of the tool; the agent's name, as an identifier, where not given. */
  readonly name?: string | undefined
  /** When to use it; the agent's own description where not given. */
  readonly description?: string | undefined
  /** `read`: several of them may be at work at the same time, and share what is left of the limits. `write` by default. */
  readonly effect?: ToolEffect | undefined
  /** The budget of each of its runs: limits over those of the agent, and within what the parent has left. */
  readonly limits?: GivenLimits | undefined
}

const agentToolOptions = fields<AgentToolOptions>({
  name: maybe(filledText),
  description: maybe(filledText),
  effect: maybe(oneOf(['read', 'write'])),
  limits: maybe(someLimits),
})

/** A tool whose work is done by an agent, in a run of its own. */
export interface AgentTool<in Context = AnyContext> extends Tool<Context> {
  readonly agent: Agent<unknown, Context>
  /** Over those of the agent. */
  readonly limits?: GivenLimits
}

/**
 * Lets an agent be a tool of another. Each call is a run of its own in the same ledger, with `parent` set: its limits
 * are within what its parent has left, what it uses counts as its parent's, its approvals show at the top, and it is
 * cancelled with it. After a crash the same run is taken up again, never a second one started.
 */
export function agentTool<Context>(
  agent: Agent<unknown, Context>,
  options: AgentToolOptions = {},
): AgentTool<Context> {
  requireOptions('agentTool', definedAgent, agent, 'the agent')
  requireOptions('agentTool', agentToolOptions, options)
  const { effect = 'write', limits } = options
  const name = options.name ?? agent.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_')
  const description = options.description ?? agent.description
  if (description === undefined) {
    throw new ConfigurationError(
      `The agent ${agent.name} has no description, so no model could tell when to ask it. Give it one, or give agentTool one.`,
    )
  }
  return {
    name,
    description,
    effect,
    recovery: 'rerun',
    agent,
    child: agent.name,
    ...omitUndefined({ limits }),
    inputSchema: {
      type: 'object',
      properties: {
        task: { type: 'string', description: 'What to do, with all that is needed to know for it.' },
      },
      required: ['task'],
      additionalProperties: false,
    },
    check: (input) =>
      taskOf(input) === undefined
        ? { kind: 'refuse', outcome: 'invalid_input', text: 'task: expected a text that is not empty' }
        : { kind: 'run' },
    run: () =>
      throwError(() => new ConfigurationError(`The tool ${name} is an agent: only a runtime can run it.`)),
  }
}

/** What a call asks an agent to do. */
export function taskOf({ task }: JsonObject): string | undefined {
  return typeof task === 'string' && task.trim() !== '' ? task : undefined
}

/** Whether a tool's work is done by an agent. */
export function isAgentTool(tool: Tool): tool is AgentTool {
  return tool.child !== undefined && 'agent' in tool
}
