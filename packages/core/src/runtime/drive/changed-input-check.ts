import { toolsNow } from '../definition/sourced-tools.ts'
import type { Refusal } from '../../machine/rules.ts'
import type { Clock } from '../../values/host.ts'
import type { RunState } from '../../machine/state.ts'
import { findCall } from '../../machine/calls.ts'
import type { OutsideCommand } from '../../events/commands.ts'
import { canonicalJson } from '../../values/json.ts'
import { answerInTime, late, stoppableClock } from '../checks/answer-in-time.ts'
import { verdictOn, type CallChecker } from '../checks/call-check.ts'
import type { Judged } from '../checks/input-repair.ts'
import { textOfError } from '../../values/text.ts'
import type { Drive } from './drive.ts'
import { stateOf } from '../reading/load-state.ts'
import { inputFaultOf } from '../schema/recorded-schema.ts'

/** How long a tool may take to check an input, in milliseconds: who drives the run waits for it. */
const maxCheckMs = 10_000

/** Who drives the run. */
interface Approver {
  readonly agent: (CallChecker & { readonly name: string }) | undefined
  readonly clock: Clock
  /** What the application gave the run. */
  readonly context: unknown
}

/**
 * Says why the input that an approver gives in the place of the model's would not run; `undefined` where it would, or
 * where the call is not there. Where this process knows the tool, the input goes the way of the model's: the tool's own
 * check, the guardrails on tool input and the agent's policy. Elsewhere the schema on record says so.
 */
export async function changedInputFault(
  command: OutsideCommand,
  state: RunState,
  { agent, clock, context }: Approver,
): Promise<Refusal | undefined> {
  if (command.type !== 'approve' || command.input === undefined) return undefined
  const call = findCall(state, command.toolCallId)
  if (call === undefined) return undefined
  const { runId } = state
  const { toolCallId, name } = call
  const { input } = command
  const tool = agent && toolsNow(agent).find((each) => each.name === name)
  const offered = [...state.definition.tools, ...(state.sourced?.tools ?? [])]
  const recorded = offered.find((each) => each.name === name)
  const { malformed: _model, ...plain } = call
  const fault =
    tool && agent
      ? await ownFault(
          async (own) => await verdictOn({ ...plain, input }, tool, agent, { state, context, clock: own }),
          clock,
        )
      : recorded && inputFaultOf(recorded.inputSchema, input)
  if (fault === undefined) return undefined
  const message = `Tool call ${toolCallId} of run ${runId} was not approved, since ${name} cannot run with the changed input. ${fault} Approve it with an input that fits, or as it was asked for.`
  return { code: 'invalid_input', message }
}

/** The same of a run as its ledger has it. */
export async function changedInputRefusal(
  command: OutsideCommand,
  { runId, parts, context }: Pick<Drive, 'runId' | 'parts' | 'context'>,
): Promise<Refusal | undefined> {
  const { ledger, agents, host } = parts
  const state = await stateOf(ledger, runId)
  return (
    state &&
    (await changedInputFault(command, state, {
      agent: agents.find(state.agent),
      clock: host.clock,
      context,
    }))
  )
}

async function ownFault(check: (clock: Clock) => Promise<Judged>, clock: Clock): Promise<string | undefined> {
  const timers = stoppableClock(clock)
  try {
    const judged = await answerInTime(() => check(timers.clock), clock, maxCheckMs)
    if (judged === late) return `Its check did not end in ${maxCheckMs} ms.`
    if (judged.verdict.kind === 'refuse') return judged.verdict.text
    if (judged.input === undefined) return undefined
    return `A guardrail would put another input in its place: ${canonicalJson(judged.input)}. Approve that one, or deny the call.`
  } catch (error) {
    return `Its check failed: ${textOfError(error)}`
  } finally {
    timers.stop()
  }
}
