import { childRunIdOf, type ToolCallId } from '../../values/ids.ts'
import type { ResultPart } from '../../events/content.ts'
import { toolSignalSchema } from '../../events/signals.ts'
import { textOfError } from '../../values/text.ts'
import { answerOf } from '../../values/option.ts'
import { faultOf } from '../../values/schema.ts'
import { findCall, textContent } from '../../machine/calls.ts'
import type { RunState } from '../../machine/state.ts'
import type { AgentTool } from '../definition/agent-tool.ts'
import type { RuntimeParts } from '../definition/runtime-parts.ts'
import { stateOf } from '../reading/load-state.ts'
import { wholeResult } from '../reading/run-result.ts'
import type { ChildEnding } from './child-ending.ts'
import { agentToolOf } from './child-start.ts'

/**
 * Returns the ending of a child run with what the calling model reads of its answer, where the tool of the call says so. Only the
 * process that drives the parent asks: it knows the tool.
 */
export async function readEnding(
  parent: RunState,
  toolCallId: ToolCallId,
  ending: ChildEnding,
  { agents, ledger }: Pick<RuntimeParts, 'agents' | 'ledger'>,
): Promise<ChildEnding> {
  const call = findCall(parent, toolCallId)
  const tool = call && agentToolOf(parent, call, agents)
  if (tool?.answerOf === undefined || ending.outcome !== 'success') return ending
  const child = await stateOf(ledger, childRunIdOf(parent.runId, toolCallId))
  if (child?.phase !== 'done' || child.reason !== 'answered') return ending
  try {
    const { text, output, turns, toolCalls } = await wholeResult(child, ledger, agents.find(child.agent))
    return { ...ending, content: contentOf(tool, { text, output, turns, toolCalls }) }
  } catch (error) {
    const text = `The work was done, and its answer could not be read: ${textOfError(error)}`
    return { ...ending, outcome: 'failed', content: textContent('failed', text) }
  }
}

function contentOf(
  { name, answerOf: readOf }: AgentTool,
  answer: Parameters<NonNullable<AgentTool['answerOf']>>[0],
): readonly ResultPart[] {
  const read: unknown = answerOf(`output of agentTool (${name})`, () => readOf?.(answer))
  const content: unknown = typeof read === 'string' ? [{ type: 'text', text: read }] : read
  const fault = faultOf(toolSignalSchema, { type: 'tool_ended', outcome: 'success', content })
  if (fault === undefined) return content as readonly ResultPart[]
  throw new TypeError(`output of agentTool (${name}) answered neither a text nor parts of a result`)
}
