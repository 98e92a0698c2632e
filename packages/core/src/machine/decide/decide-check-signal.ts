import type { Command } from '../../vocabulary/events/command.ts'
import type { UserMessage } from '../../vocabulary/model/content.ts'
import type { Fact } from '../../vocabulary/events/event.ts'
import { canonicalJson, type JsonObject } from '../../vocabulary/values/json.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { GuardrailFind, Signal } from '../../vocabulary/signals/signal.ts'
import { summaryFact } from '../prompt/compaction.ts'
import { nothing, type Decision } from '../state/decision.ts'
import { dueAnswerCheck, dueResultsCheck } from '../state/due-checks.ts'
import type { RunState } from '../state/state.ts'

type CheckSignal = Extract<Signal, { readonly type: 'guardrails_checked' | 'output_checked' | 'summarized' }>

const checkSignals: ReadonlySet<string> = new Set<CheckSignal['type']>([
  'guardrails_checked',
  'output_checked',
  'summarized',
])

/** Whether a message says what guardrails, a schema or a summing-up model made of what the run holds. */
export function isCheckSignal(message: Command | Signal): message is CheckSignal {
  return checkSignals.has(message.type)
}

/** What follows from a check. One of something that is not there any more, or not as it was, changes nothing. */
export function decideCheckSignal(state: RunState, signal: CheckSignal): Decision {
  switch (signal.type) {
    case 'guardrails_checked':
      return decideGuardrailsChecked(state, signal)
    case 'output_checked':
      return decideOutputChecked(state, signal)
    case 'summarized':
      return state.compacting && !state.compacting.interrupted && signal.turn === state.turn
        ? { facts: [summaryFact(state, state.compacting, signal)] }
        : nothing
  }
}

function decideGuardrailsChecked(
  state: RunState,
  signal: Extract<CheckSignal, { type: 'guardrails_checked' }>,
): Decision {
  const { on, guardrails, finds } = signal
  if (!isCheckDue(state, signal)) return nothing
  return {
    facts: [
      ...finds.map((find) => tripFact(state, on, find)),
      { type: 'guardrails_checked', turn: state.turn, on, guardrails },
    ],
  }
}

function isCheckDue(
  state: RunState,
  { on, place, guardrails }: Extract<CheckSignal, { type: 'guardrails_checked' }>,
): boolean {
  switch (on) {
    case 'input': {
      const { seq, guardrails: due = [] } = state.inputCheck ?? {}
      return seq === place && guardrails.some((name) => due.includes(name))
    }
    case 'output':
      return place === state.turn && state.phase === 'collecting' && dueAnswerCheck(state) === 'guardrails'
    case 'tool_output':
      return place === state.turn && state.phase === 'executing' && dueResultsCheck(state)
  }
}

/** The fact of a find. An input that is at work already cannot be replaced any more: that blocks. */
export function tripFact(
  state: RunState,
  on: Extract<Fact, { type: 'guardrail_tripped' }>['on'],
  { guardrail, action, detail, index, toolCallId, replacement }: GuardrailFind,
): Fact {
  const late = on === 'input' && action === 'replace' && state.phase !== 'idle' && !state.inputSinceReply
  return {
    type: 'guardrail_tripped',
    turn: state.turn,
    guardrail,
    on,
    action: late ? 'block' : action,
    ...omitUndefined({ toolCallId, detail, index }),
    ...(late ? {} : omitUndefined({ replacement })),
  }
}

function decideOutputChecked(
  state: RunState,
  { turn, verdict }: Extract<CheckSignal, { type: 'output_checked' }>,
): Decision {
  if (state.phase !== 'collecting' || dueAnswerCheck(state) !== 'schema') return nothing
  if (turn !== state.turn) return nothing
  const here = { type: 'output_checked' as const, turn: state.turn }
  if (verdict.valid) return { facts: [{ ...here, valid: true, output: verdict.output }] }
  const { error } = verdict
  const { output } = state.definition
  const mayRepair = output && !state.reply.finalizing && state.repairs < output.maxRepairs
  const repair = mayRepair ? repairRequest(error, output.schema) : undefined
  return { facts: [{ ...here, valid: false, error, ...omitUndefined({ repair }) }] }
}

/**
 * Each repair request repeats the schema: not every wire has shown it to the model, and a fallback may not have seen
 * it yet.
 */
function repairRequest(error: string, schema: JsonObject): UserMessage {
  const text = `Your answer does not fit the schema that it has to fit: ${error}
This is the schema (JSON Schema): ${canonicalJson(schema)}
Write the whole answer again, as JSON that fits the schema, and nothing else.`
  return { role: 'user', parts: [{ type: 'text', text }] }
}
