import type { PendingApproval } from '../../machine/state/tally.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { RunResult } from '../reading/run-result.ts'

/** A pending approval, or as much of one as names the question: which start of which call, with which input. */
export type ShownApproval = Pick<PendingApproval, 'toolCallId' | 'attempt' | 'inputDigest'>

/** Which question a decision answers, where the decision itself says so. */
export interface Question {
  readonly attempt?: number | undefined
  readonly inputDigest?: string | undefined
}

/** What a decision says of its question, as a command carries it. */
interface Answered {
  readonly toolCallId: string
  readonly attempt?: number
  readonly inputDigest?: string
}

/**
 * The questions that one handle has shown, the last of each call. Two handles of one run may have shown different ones:
 * a decision through the older handle must not answer what only the newer one has shown.
 */
export class ShownApprovals {
  readonly #shown = new Map<string, ShownApproval>()

  /** Takes in a result that the handle gives out, in front of its reader. */
  resultOf(result: Promise<RunResult>): void {
    const take = ({ pendingApprovals }: RunResult): void => {
      for (const approval of pendingApprovals) this.#shown.set(approval.toolCallId, approval)
    }
    result.then(take, () => {})
  }

  /** Takes in an event that the handle gives out. */
  event(event: RuntimeEvent): void {
    if (event.type === 'approval_requested') this.#shown.set(event.toolCallId, event)
  }

  /** Returns the question that a decision answers: the one that it names, else the one that was shown. */
  answered(call: string | ShownApproval, named: Question): Answered {
    const given = typeof call === 'string' ? this.#shown.get(call) : call
    const { attempt = given?.attempt, inputDigest = given?.inputDigest } = named
    return {
      toolCallId: typeof call === 'string' ? call : call.toolCallId,
      ...omitUndefined({ attempt, inputDigest }),
    }
  }
}
