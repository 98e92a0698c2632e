import type { RunState } from '../../machine/state/state.ts'
import type { Host } from '../../ports/clock.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { OutsideCommand } from '../../vocabulary/events/command.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import type { Agent } from '../agent/agent.ts'
import type { ChildRuns } from '../children/child-runs.ts'
import type { CommandAcknowledgement } from '../commands/command-acknowledgement.ts'
import type { RunResult } from '../reading/run-result.ts'

/** What a coordinator uses of that of another run. */
interface OtherCoordinator {
  setContext(context: unknown): void
  send(command: OutsideCommand): Promise<CommandAcknowledgement>
  readonly result: Promise<RunResult>
  readonly reported: Promise<void>
}

/** What a coordinator needs of its runtime. */
export interface CoordinatorOptions {
  readonly runId: RunId
  readonly ledger: Ledger
  readonly host: Host
  readonly findAgent: (name: string) => Agent<unknown> | undefined
  /** Drives the child runs of this run, with its context. */
  readonly children: (context: unknown) => ChildRuns
  /** The coordinator of another run of the same runtime. */
  readonly coordinatorOf: (runId: RunId) => OtherCoordinator
  /** Whether a run is a child run of this one, at any depth. */
  readonly isDescendantOf: (runId: RunId, root: RunId) => Promise<boolean>
  /** Called with the state in which the run ended. */
  readonly onEnd: (state: RunState, context: unknown) => Promise<void>
  /** Makes keys for inbox entries, unique for ever. */
  readonly newKey: () => string
  readonly onDrift: 'continue' | 'refuse'
  /** Called when a drive session begins, and when it ends. */
  readonly onDriving: (driving: boolean) => void
  /** Whether a process drives a run; `undefined` where the store cannot know. */
  readonly isDriven: (runId: RunId) => Promise<boolean | undefined>
  /** Whether the runtime was drained, and continues no run. */
  readonly isDrained: () => boolean
  /** Called when the writer of the run has failed: the coordinator drives no more. */
  readonly onFailure: () => void
}
