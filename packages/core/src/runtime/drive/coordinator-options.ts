import type { RunState } from '../../machine/state/state.ts'
import type { Host } from '../../ports/clock.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { OutsideCommand } from '../../vocabulary/events/command.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import type { Agent } from '../agent/agent.ts'
import type { ChildRuns } from '../children/child-runs.ts'
import type { CommandReceipt } from '../commands/command-acknowledgement.ts'
import type { RunResult } from '../reading/run-result.ts'

/** What a hub uses of that of another run. */
interface OtherHub {
  give(context: unknown): void
  send(command: OutsideCommand): Promise<CommandReceipt>
  readonly result: Promise<RunResult>
  readonly reported: Promise<void>
}

/** What a hub needs of its runtime. */
export interface HubOptions {
  readonly runId: RunId
  readonly ledger: Ledger
  readonly host: Host
  readonly agentNamed: (name: string) => Agent<unknown> | undefined
  /** What drives runs that work for this one, with its context. */
  readonly children: (context: unknown) => ChildRuns
  /** The hub of another run of the same runtime. */
  readonly hubOf: (runId: RunId) => OtherHub
  /** Whether a run works for this one. */
  readonly worksFor: (runId: RunId, root: RunId) => Promise<boolean>
  /** Hears of the run's end. */
  readonly onEnd: (state: RunState, context: unknown) => Promise<void>
  /** Makes keys for inbox entries, unique for ever. */
  readonly newKey: () => string
  readonly onDrift: 'continue' | 'refuse'
  /** Hears when the run begins to be driven here, and when it is not any more. */
  readonly onDriving: (driving: boolean) => void
  /** Whether a process drives a run; `undefined` where nobody can know. */
  readonly isDriven: (runId: RunId) => Promise<boolean | undefined>
  /** Whether the runtime takes no run further any more. */
  readonly drained: () => boolean
  /** Called when the run's writer has failed: this hub drives no more. */
  readonly onFailure: () => void
}
