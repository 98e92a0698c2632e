import type { ToolResult } from '../../vocabulary/model/content.ts'
import type { CallRefusal, ParentRef } from '../../vocabulary/events/event.ts'
import type { Call, ExecutingState, RunState } from '../state/state.ts'

/** What decides whether a call may be started. */
type Startable = Pick<Call, 'effect' | 'recorded' | 'approvedSeq'>

/**
 * Whether a call may not start: no recorded result answers it, and it is a write of a fork, or of a child run of one, that
 * no person has approved there, or a call that was approved before the fork began. The source run has performed its writes
 * already, and an approval is for one execution in its own run.
 */
export function isHeldBack({ parent }: Pick<RunState, 'parent'>, call: Startable): boolean {
  if (call.recorded !== undefined) return false
  if (isApprovedElsewhere(parent, call)) return true
  const writes = writesOf(parent)
  if (writes === 'run' || call.effect === 'read') return false
  return writes === 'stub' || call.approvedSeq === undefined
}

/** Law 13: whether the last approval of a call was given in the run that a fork shares its first events with. */
export function isApprovedElsewhere(
  parent: ParentRef | undefined,
  { approvedSeq }: Pick<Call, 'approvedSeq'>,
): boolean {
  return approvedSeq !== undefined && parent?.relation === 'fork' && approvedSeq <= parent.seq
}

/** What happens to such a call: a person is asked, or it is not performed. */
export function heldBackPlan({ parent }: Pick<RunState, 'parent'>, { effect }: Startable): 'ask' | 'stub' {
  return writesOf(parent) === 'stub' && effect !== 'read' ? 'stub' : 'ask'
}

/** Whether a call in doubt is started again without a question. */
export function isRerun({
  status,
  recovery,
  inputRemoved,
}: Pick<Call, 'status' | 'recovery' | 'inputRemoved'>): boolean {
  return status === 'in_doubt' && recovery === 'rerun' && inputRemoved === undefined
}

/** The calls that would be started now, were they not held back. */
export function heldBackCalls(state: ExecutingState, plan: 'ask' | 'stub'): readonly Call[] {
  if (state.parent === undefined) return []
  return state.calls.filter(
    (call) =>
      (call.status === 'ready' || call.status === 'to_retry' || isRerun(call)) &&
      isHeldBack(state, call) &&
      heldBackPlan(state, call) === plan,
  )
}

function writesOf(parent: ParentRef | undefined): NonNullable<ParentRef['writes']> {
  return parent?.writes ?? 'run'
}

const heldBackReason =
  'This run is a fork, and no recorded result answers the call: approved, it is performed for real, under a new idempotency key.'

/** The reason that a person reads when asked about a call of a fork, after what else there is to say of it. */
export function reasonInFork(reason: string | undefined): string {
  if (reason === undefined) return heldBackReason
  return reason.includes(heldBackReason) ? reason : `${reason}. ${heldBackReason}`
}

/** The text that the model reads instead of the result of a write. */
export const stubbed: CallRefusal = {
  outcome: 'skipped',
  text: 'This run is a fork, in which writes are not performed: nothing was changed. Go on as if it were done, and say that it was not.',
}

/** Whether a result says that a write of a fork was not performed. */
export function isStubbed({ outcome, content }: Pick<ToolResult, 'outcome' | 'content'>): boolean {
  const [part] = content
  const isText = part?.type === 'text' && part.text === stubbed.text
  return isText && (outcome === 'skipped' || outcome === 'interrupted')
}
