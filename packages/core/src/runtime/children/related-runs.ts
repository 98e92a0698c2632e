import type { OutsideCommand } from '../../events/commands.ts'
import type { RunId } from '../../values/ids.ts'
import type { CommandAcknowledgement } from '../commands/sent-commands.ts'
import type { ReadyStart } from '../drive/run-loop.ts'
import type { DrivenRuns } from '../reading/follow-run.ts'
import type { RunResult } from '../reading/run-result.ts'

/** A parent or a child run, as this process holds it. */
export interface RelatedRun {
  /** Whether this process drives it. */
  readonly isDrivenHere: boolean
  /** Its result when it stops. */
  readonly result: Promise<RunResult>
  /** Resolves when its end was reported to its own parent. */
  readonly reported: Promise<void>
  /** Whether it is taken over, when it is driven next, also from a process that may live. */
  readonly takesOver: boolean
  takeOver(): void
  /** Takes what the application gave a relative, unless it said how this run's own is made. */
  inheritContext(context: unknown): void
  start(run: { readonly prepare: () => Promise<ReadyStart> }): void
  drive(options: { readonly withChildren: boolean }): void
  resume(options: { readonly withChildren: boolean }): Promise<RunResult>
  send(command: OutsideCommand): Promise<CommandAcknowledgement>
}

/** The runs of this process, as a run sees its relatives among them. */
export interface RelatedRuns extends DrivenRuns {
  /** The run of an id: the one that this process holds, or one that it holds from here on. */
  coordinatorOf(runId: RunId): RelatedRun
}
