import type { PendingApproval, Run, RunResult, RuntimeEvent } from '@tallystick/core'
import { CommandError } from '../command/exit-code.ts'

/**
 * What a person says to a call that waits: run it, do not, or nothing for now, which leaves the run suspended. `via` is
 * how they said it, for the record.
 */
export type ApprovalChoice =
  | { readonly kind: 'approve'; readonly via: string }
  | { readonly kind: 'deny'; readonly via: string; readonly reason: string }
  | { readonly kind: 'later' }

/** Who is asked, and who watches, while a run is driven. */
export interface DriveRunOptions {
  /** Who decides, for the record. */
  readonly by: string
  /** Asked for each call that waits, one at a time. */
  readonly choose: (approval: PendingApproval) => ApprovalChoice | Promise<ApprovalChoice>
  /** Gets each event of the run once, in order, from the first. The next one waits for it. */
  readonly watch: (event: RuntimeEvent) => void | Promise<void>
}

/**
 * Waits for a run to rest, answers what it is suspended on, and so on until it is done or something is left for later.
 * Throws a `CommandError` with the code `refused` when the run takes none of the decisions.
 */
export async function driveRun(run: Run, options: DriveRunOptions): Promise<RunResult> {
  let watchedSeq = 0
  for (;;) {
    for await (const event of run.after(watchedSeq)) {
      watchedSeq = event.seq
      await options.watch(event)
    }
    const result = await run.result
    if (result.status === 'done' || !(await decide(run, result.pendingApprovals, options))) return result
  }
}

/** Asks for a decision on each pending call, and returns whether any decision lets the run continue. */
async function decide(
  run: Run,
  pending: readonly PendingApproval[],
  options: DriveRunOptions,
): Promise<boolean> {
  const { by, choose } = options
  const decisions: (() => ReturnType<Run['approve']>)[] = []
  for (const approval of pending) {
    const choice = await choose(approval)
    if (choice.kind === 'approve') decisions.push(() => run.approve(approval, { by, via: choice.via }))
    if (choice.kind === 'deny') {
      const { via, reason } = choice
      decisions.push(() => run.deny(approval, { by, via, reason }))
    }
  }
  const acknowledgements = await Promise.all(decisions.map((send) => send()))
  const refusals = acknowledgements.flatMap((acknowledgement) =>
    acknowledgement.accepted ? [] : [acknowledgement.message],
  )
  if (refusals.length > 0 && refusals.length === acknowledgements.length) {
    throw new CommandError('refused', `The run took no decision. ${refusals.join(' ')}`)
  }
  return acknowledgements.length > 0
}
