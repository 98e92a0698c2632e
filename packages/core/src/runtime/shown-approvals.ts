import { limitChecks, limitName } from '../agent/agent.ts'
import type { RuntimeEvent } from '../events/event.ts'
import type { LimitName } from '../events/limits.ts'
import type { PendingApproval } from '../machine/calls.ts'
import { runIdOfCall } from '../values/ids.ts'
import { omitUndefined, type OrUndefined } from '../values/json.ts'
import {
  anyObject,
  anyText,
  fields,
  filledText,
  maybe,
  numberFrom,
  type OptionCheck,
  type Fault,
  faultIn,
} from '../values/option.ts'
import type { RunResult } from './run-result.ts'

/** A pending approval, or as much of one as names the question: which start of which call, with which input. */
export type ShownApproval = Pick<PendingApproval, 'toolCallId' | 'attempt' | 'inputDigest'>

/** Names the question that a decision answers. */
export interface Question {
  readonly attempt?: number | undefined
  readonly inputDigest?: string | undefined
}

/**
 * The questions that one handle has shown, the last of each call. Two handles of one run may have shown different ones:
 * a decision through the older handle must not answer what only the newer one has shown.
 */
export class ShownApprovals {
  readonly #shown = new Map<string, ShownApproval>()

  /** Takes in a result that the handle gives out, in front of its reader. */
  resultOf(result: Promise<RunResult>): void {
    result.then(
      ({ pendingApprovals }) => {
        for (const approval of pendingApprovals) this.#shown.set(approval.toolCallId, approval)
      },
      () => {},
    )
  }

  /** Takes in an event that the handle gives out. */
  event(event: RuntimeEvent): void {
    if (event.type === 'approval_requested') this.#shown.set(event.toolCallId, event)
  }

  /** Returns the question that a decision answers: the one that it names, else the one that was shown. */
  answered(
    call: string | ShownApproval,
    named: Question,
  ): { readonly toolCallId: string; readonly attempt?: number; readonly inputDigest?: string } {
    const given = typeof call === 'string' ? this.#shown.get(call) : call
    const { attempt = given?.attempt, inputDigest = given?.inputDigest } = named
    return {
      toolCallId: typeof call === 'string' ? call : call.toolCallId,
      ...omitUndefined({ attempt, inputDigest }),
    }
  }
}

/** The fields that an approval and a denial share. */
type DecisionGiven = Question & { readonly by: string; readonly via?: string | undefined }

const decision = {
  by: filledText,
  via: maybe(filledText),
  attempt: maybe(numberFrom(1, { whole: true })),
  inputDigest: maybe(filledText),
}

const approval = fields<
  DecisionGiven & { readonly input?: object | undefined; readonly reason?: string | undefined }
>({
  ...decision,
  reason: maybe(anyText),
  input: maybe(anyObject),
})
const denial = fields<DecisionGiven & { readonly reason: string }>({ ...decision, reason: anyText })

/** Checks a pending approval that a caller gives back. */
export const shownApproval: OptionCheck = fields<ShownApproval & OrUndefined<Partial<PendingApproval>>>({
  toolCallId: filledText,
  attempt: numberFrom(1, { whole: true }),
  inputDigest: filledText,
  runId: maybe(anyText),
  name: maybe(anyText),
  input: maybe(anyObject),
  reason: maybe(anyText),
})

/** The id of a call says which run asked: an approval that names another run was put together wrongly. */
function otherRun(call: unknown): Fault | undefined {
  const { toolCallId, runId } = Object(call) as Partial<PendingApproval>
  if (toolCallId === undefined || runId === undefined) return undefined
  const asking = runIdOfCall(toolCallId)
  if (asking === undefined || asking === runId) return undefined
  return {
    path: 'the approval.runId',
    what: 'is not the run of its toolCallId; give the approval as it was shown',
  }
}

/** Returns what is wrong with a decision that a caller gave; `undefined` where nothing is. */
export function decisionFault(kind: 'approve' | 'deny', call: unknown, decision: unknown): Fault | undefined {
  const fault =
    typeof call === 'object'
      ? faultIn('the approval', shownApproval(call))
      : faultIn('the tool call id', filledText(call))
  return fault ?? otherRun(call) ?? (kind === 'approve' ? approval : denial)(decision)
}

const raising = fields<{ readonly by: string; readonly reason?: string | undefined }>({
  by: filledText,
  reason: maybe(anyText),
})

/** Returns what is wrong with a limit that a caller raises; `undefined` where nothing is. */
export function raiseFault(limit: unknown, max: unknown, decision: unknown): Fault | undefined {
  return (
    faultIn('the limit', limitName(limit)) ??
    faultIn(String(limit), limitChecks[limit as LimitName](max)) ??
    faultIn('the decision', raising(decision))
  )
}

const cancelling = fields<{ readonly by?: string | undefined; readonly reason?: string | undefined }>({
  by: maybe(filledText),
  reason: maybe(anyText),
})

/** Returns what is wrong with what a caller says of a cancel; `undefined` where nothing is. */
export function cancelFault(decision: unknown): Fault | undefined {
  return faultIn('the decision', cancelling(decision))
}
