import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import type { CallPlan, EventOf, JsonObject, ToolEffect } from '@tallystick/core/vocabulary'

/** A call whose tool was found, as its check saw it, with what came of the check. */
export interface CheckedCall {
  readonly runId: RunId
  readonly toolCallId: string
  readonly agent: string
  readonly tool: string
  readonly effect: ToolEffect
  readonly input: JsonObject
  readonly plan: CallPlan
}

const types = ['run_started', 'agent_handed_off', 'tool_request_ready', 'tool_requests_collected'] as const

/** Every call on record that a policy may judge and whose input is still there, in the order in which they were checked. */
export async function* checkedCalls(ledger: Ledger): AsyncGenerator<CheckedCall> {
  const agents = new Map<RunId, string>()
  const inputs = new Map<string, JsonObject>()
  for await (const event of ledger.find({ types })) {
    const agent = agentFrom(event)
    if (agent !== undefined) agents.set(event.runId, agent)
    if (event.type === 'tool_request_ready' && event.removed === undefined)
      inputs.set(event.toolCallId, event.input)
    if (event.type === 'tool_requests_collected') yield* callsOf(event, agents.get(event.runId) ?? '', inputs)
  }
}

function agentFrom(event: RuntimeEvent): string | undefined {
  if (event.type === 'run_started') return event.agent
  return event.type === 'agent_handed_off' ? event.to : undefined
}

function* callsOf(
  { runId, calls }: EventOf<'tool_requests_collected'>,
  agent: string,
  inputs: Map<string, JsonObject>,
): Generator<CheckedCall> {
  for (const { toolCallId, name: tool, effect, plan, input: changed, refusal } of calls) {
    const input = changed ?? inputs.get(toolCallId)
    inputs.delete(toolCallId)
    // An input that does not fit, say, is refused before a policy is asked.
    const isJudged = effect !== undefined && (refusal === undefined || refusal.outcome === 'denied')
    if (!isJudged || input === undefined) continue
    yield { runId, toolCallId, agent, tool, effect, input, plan }
  }
}
