import { childLimits } from '../../machine/limit-checks.ts'
import { childRunIdOf } from '../../values/ids.ts'
import type { Call, ExecutingState, RunState } from '../../machine/state.ts'
import type { StartCommand } from '../../events/commands.ts'
import { omitUndefined } from '../../values/json.ts'
import { isAgentTool, type AgentTool } from '../definition/agent-tool.ts'
import type { RuntimeParts } from '../definition/runtime-parts.ts'
import { givenIn, withDefaults } from '../session/recorded-options.ts'
import { messageOf } from '../session/input-message.ts'
import { startCommand } from '../session/start-command.ts'

/** The tool of a call whose work an agent does, as the code of its agent is now. */
export function agentToolOf(
  { agent }: RunState,
  { name }: Pick<Call, 'name'>,
  { find }: Pick<RuntimeParts['agents'], 'find'>,
): AgentTool | undefined {
  const tool = find(agent)?.tools.find((each) => each.name === name)
  return tool && isAgentTool(tool) ? tool : undefined
}

/** Returns the command that starts the child run of a call. */
export async function childStartCommand(
  state: ExecutingState,
  call: Call,
  { agents, defaults }: Pick<RuntimeParts, 'agents' | 'defaults'>,
  context: unknown,
): Promise<StartCommand> {
  const { register, find } = agents
  const childId = childRunIdOf(state.runId, call.toolCallId)
  const tool = agentToolOf(state, call, { find })
  if (tool === undefined) {
    throw new TypeError(`the agent ${state.agent} has no tool ${call.name} any more that is an agent`)
  }
  const started = await tool.taskOf(call.input)
  if ('fault' in started)
    throw new TypeError(`the input of ${call.name} does not fit any more: ${started.fault}`)
  const agent = register(tool.agent)
  const own = {
    ...agent.limits,
    ...omitUndefined({ ...defaults.limits }),
    ...omitUndefined({ ...tool.limits }),
  }
  const limits = childLimits(call.grant ?? {}, own, state.limits)
  const given = givenIn(agent, withDefaults({}, defaults), agents)
  const command = startCommand(childId, agent, messageOf(started.task), {
    limits,
    given,
    register,
    context,
  })
  const { writes } = state.parent ?? {}
  const { grant } = call
  const parent = {
    runId: state.runId,
    seq: state.seq,
    relation: 'child' as const,
    ...omitUndefined({ writes, grant }),
  }
  const { subject, owner, labels } = state
  return { ...command, limits, parent, ...omitUndefined({ subject, owner, labels }) }
}
