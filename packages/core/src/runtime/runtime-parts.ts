import type { RunHooks } from '../agent/hooks.ts'
import type { RecordedRun } from '../agent/prepare-turn.ts'
import type { AgentRegistry, KnownModels } from '../agent/registry.ts'
import type { RecordingPolicy } from '../events/agent-definition.ts'
import type { OutsideCommand } from '../events/commands.ts'
import type { GivenLimits } from '../events/limits.ts'
import type { ModelSettings } from '../events/model-request.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { RunState } from '../machine/state.ts'
import type { Model } from '../models/model.ts'
import { ConfigurationError } from '../values/errors.ts'
import type { Host } from '../values/host.ts'
import type { RunId } from '../values/ids.ts'
import type { ChildRuns } from './children.ts'
import type { CommandAcknowledgement } from './commands.ts'
import type { DrivenRuns } from './follow-run.ts'
import type { HeldLeases } from './leases.ts'
import type { ReadyStart } from './run-loop.ts'
import type { RunResult } from './run-result.ts'

/** What the runs of a runtime are given, where they are given nothing else. */
export interface RunDefaults {
  readonly model?: Model
  readonly modelSettings?: ModelSettings
  readonly limits?: GivenLimits
  readonly recording?: RecordingPolicy
  /** Called for every run, beside its own. */
  readonly hooks: readonly RunHooks[]
}

/** What a runtime is made of, given once to each part that drives runs. */
export interface RuntimeParts {
  readonly ledger: Ledger
  readonly host: Host
  /** The leases of the runs that are driven. */
  readonly leases: HeldLeases
  /** The agents that it knows. */
  readonly agents: AgentRegistry
  /** The models that its runs may be given. */
  readonly models: KnownModels
  /** What all runs are given that say nothing else. */
  readonly defaults: RunDefaults
  /** Makes the context of a run that is taken up and is given none. */
  readonly contextOf?: (run: RecordedRun) => unknown
  /** What it does with a run whose agent has other code now. */
  readonly onDrift: 'continue' | 'refuse'
  /** Makes ids of runs and keys of inbox entries, unique for ever. */
  readonly newId: () => RunId
}

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
  driverOf(runId: RunId): RelatedRun
}

/** A run that this process drives. */
export interface DrivenRun {
  /** The result of the drive session under way, or of the last one. */
  readonly whenStopped: Promise<RunResult>
  /** Lets what is in flight end, begins nothing, and returns the result of the run as it stopped. */
  drain(graceMs: number): Promise<RunResult>
}

/** The coordinators of one runtime, as each of them sees the others. */
export interface Coordinators extends RelatedRuns {
  readonly children: ChildRuns
  /** A drive session of the run begins. */
  began(run: DrivenRun): void
  /** The drive session of the run has ended. */
  stopped(run: DrivenRun): void
  /** The writer of the run has failed: its coordinator drives no more. */
  failed(runId: RunId): void
  /** Reports the end of a run to its parent, if it has one. */
  reportEnd(state: RunState, context: unknown): Promise<void>
}

/** What is on record of a run whose code is at fault. */
interface OnRecord {
  readonly runId: RunId
  readonly isOnRecord: boolean
}

/**
 * Adds to a `ConfigurationError` what is on record of the run, and whether to resume it or to start it again. Returns any other
 * error as it is.
 */
export function withContinuation(error: unknown, { runId, isOnRecord }: OnRecord): unknown {
  if (!(error instanceof ConfigurationError)) return error
  const howToContinue = isOnRecord
    ? `Run ${runId} is on record up to here, and nothing is lost: continue it with resume once this is corrected.`
    : `Nothing of run ${runId} is on record: start it again once this is corrected.`
  return new ConfigurationError(`${error.message} ${howToContinue}`, { cause: error.cause ?? error })
}
