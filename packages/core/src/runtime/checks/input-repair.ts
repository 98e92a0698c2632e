import type { Call } from '../../machine/state.ts'
import type { Tool } from '../../tools/tool.ts'
import {
  type CallVerdict,
  type CheckedCall,
  type RepairedInput,
  repairedInputSchema,
  type UnfitInput,
} from '../../events/signals.ts'
import { ignoreRejection, isThenable } from '../../values/option.ts'
import { faultOf } from '../../values/schema.ts'
import type { ToolEffect } from '../../events/model-request.ts'

/** What is said of one call. */
export type Judged = Pick<CheckedCall, 'verdict' | 'finds' | 'input'>

/** What a check said of one call, and how its input was repaired. */
export type Repaired = Judged & { readonly repairs?: readonly string[] }

/**
 * The check of a call whose tool repairs inputs: where the input does not fit, the tool may repair it once, and what it made
 * of it is checked in its place. Where that does not fit either, the call ends with the first refusal.
 */
export function checkedWithRepair(
  asked: Call,
  tool: Tool,
  check: (call: Call) => Judged | Promise<Judged>,
): Repaired | Promise<Repaired> {
  const first = check(asked)
  if (isThenable(first)) return first.then((late) => repairedIfUnfit(late, asked, tool, check))
  return needsRepair(first) ? repairedIfUnfit(first, asked, tool, check) : first
}

function needsRepair({ verdict, input }: Judged): boolean {
  return isUnfit(verdict) && input === undefined
}

async function repairedIfUnfit(
  first: Judged,
  asked: Call,
  tool: Tool,
  check: (call: Call) => Judged | Promise<Judged>,
): Promise<Repaired> {
  if (!needsRepair(first)) return first
  const repaired = repairedBy(tool, asked)
  if (repaired === undefined) return first
  const { malformed: _text, ...call } = asked
  const judged = await check({ ...call, input: repaired.input })
  if (isUnfit(judged.verdict)) return first
  const { input, repairs } = repaired
  return { input, ...judged, repairs, verdict: verdictWithNote(judged.verdict, repaired, tool.effect) }
}

/** Whether a tool refused a call for its input. */
export function isUnfit(verdict: CallVerdict): boolean {
  return verdict.kind === 'refuse' && verdict.outcome === 'invalid_input'
}

/** What a tool makes of an input that does not fit; `undefined` where it makes nothing of it, or nothing that can be kept. */
export function repairedBy(tool: Tool<never>, unfit: UnfitInput): RepairedInput | undefined {
  const { toolCallId, input, malformed } = unfit
  try {
    const repaired = tool.repair?.({ toolCallId, input, ...(malformed && { malformed }) })
    if (repaired && faultOf(repairedInputSchema, repaired) === undefined) return repaired
    ignoreRejection(repaired)
    return undefined
  } catch {
    return undefined
  }
}

/** The verdict with what was repaired for the person who is asked. A write whose input was guessed at does not run unasked. */
function verdictWithNote(
  verdict: CallVerdict,
  { repairs, isGuess }: RepairedInput,
  effect: ToolEffect,
): CallVerdict {
  const note = `The model's input did not fit and was repaired: ${repairs.join('; ')}.`
  if (verdict.kind === 'run') return isGuess && effect === 'write' ? { kind: 'ask', reason: note } : verdict
  if (verdict.kind === 'refuse') return verdict
  const { reason } = verdict
  // In a replay the reason on record says it already.
  const withNote = reason?.endsWith(note) ? reason : reason === undefined ? note : `${reason}. ${note}`
  return { kind: 'ask', reason: withNote }
}
