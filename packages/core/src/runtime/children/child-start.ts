import { childLimits } from '../../machine/limits/child-grant.ts'
import { childRunIdOf } from '../../vocabulary/values/child-run-id.ts'
import type { Call, ExecutingState } from '../../machine/state/state.ts'
import type { StartCommand } from '../../vocabulary/events/command.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { isAgentTool, taskOf } from '../definition/agent-tool.ts'
import type { RuntimeParts } from '../definition/runtime-parts.ts'
import { givenIn, withDefaults } from '../session/recorded-options.ts'
import { messageOf } from '../session/input-message.ts'
import { startCommand } from '../session/start-command.ts'

/** The command that starts the child run of a call. */
export function childStartCommand(
  state: ExecutingState,
  call: Call,
  { agents, defaults }: Pick<RuntimeParts, 'agents' | 'defaults'>,
  context: unknown,
): StartCommand {
  const { register, find } = agents
  const childId = childRunIdOf(state.runId, call.toolCallId)
  const tool = find(state.agent)?.tools.find(({ name }) => name === call.name)
  if (tool === undefined || !isAgentTool(tool)) {
    throw new TypeError(`the agent ${state.agent} has no tool ${call.name} any more that is an agent`)
  }
  const agent = register(tool.agent)
  const own = {
    ...agent.limits,
    ...omitUndefined({ ...defaults.limits }),
    ...omitUndefined({ ...tool.limits }),
  }
  const limits = childLimits(call.grant ?? {}, own, state.limits)
  const given = givenIn(agent, withDefaults({}, defaults), agents)
  const command = startCommand(childId, agent, messageOf(taskOf(call.input) ?? 'Go on.'), {
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
  const { subject, labels } = state
  return { ...command, limits, parent, ...omitUndefined({ subject, labels }) }
}
