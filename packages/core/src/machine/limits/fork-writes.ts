import type { ToolResult } from '../../vocabulary/model/content.ts'
import type { CallRefusal, ParentRef } from '../../vocabulary/events/event.ts'
import type { Call, ExecutingState, RunState } from '../state/state.ts'

/** What decides whether a call may be started. */
type Startable = Pick<Call, 'effect' | 'recorded' | 'approvedSeq'>

/**
 * Whether a call may not start: it is a write of a fork, or of a child run of one, no recorded result answers it,
 * and no person has approved it in the fork. The source run has performed its writes already.
 */
export function isHeldBack({ parent }: Pick<RunState, 'parent'>, call: Startable): boolean {
  const writes = writesOf(parent)
  if (writes === 'run' || call.effect === 'read' || call.recorded !== undefined) return false
  if (writes === 'stub') return true
  const { approvedSeq } = call
  return approvedSeq === undefined || approvedSeq <= (parent?.relation === 'fork' ? parent.seq : 0)
}

/** What happens to such a call: a person is asked, unless one was asked before the fork began, or it is not performed. */
export function heldBackPlan({ parent }: Pick<RunState, 'parent'>, call: Startable): 'ask' | 'stub' {
  return writesOf(parent) === 'ask' && call.approvedSeq === undefined ? 'ask' : 'stub'
}

/** Whether a call in doubt is started again without a question. */
export function isRerun({ status, recovery }: Pick<Call, 'status' | 'recovery'>): boolean {
  return status === 'in_doubt' && recovery === 'rerun'
}

/** The calls that would be started now, were they not held back. */
export function heldBackCalls(state: ExecutingState, plan: 'ask' | 'stub'): readonly Call[] {
  if (writesOf(state.parent) === 'run') return []
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

/** The reason that a person reads when asked about a write of a fork. */
export const heldBackReason =
  'This run is a fork, and no recorded result answers the call: approved, it is performed for real, under a new idempotency key.'

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
