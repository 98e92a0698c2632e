import type { Subject } from 'rxjs'
import type { RunHooks } from '../agent/hooks.ts'
import type { RecordedRun } from '../agent/prepare-turn.ts'
import type { AgentRegistry, KnownModels } from '../agent/registry.ts'
import type { RecordingPolicy } from '../events/agent-definition.ts'
import type { OutsideCommand, StartCommand } from '../events/commands.ts'
import type { GivenLimits } from '../events/limits.ts'
import type { ModelSettings } from '../events/model-request.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { RunState } from '../machine/state.ts'
import type { Model } from '../models/model.ts'
import type { Host } from '../values/host.ts'
import type { RunId } from '../values/ids.ts'
import type { CommandAcknowledgement, SentCommands } from './commands.ts'
import type { KnownEnds } from './known-ends.ts'
import type { HeldLeases } from './leases.ts'
import type { RunResult } from './run-result.ts'
import type { LiveEvents, LiveText } from './run-streams.ts'

/** The parts of a runtime, for all code that drives or reads its runs. */
export interface RuntimeParts {
  readonly ledger: Ledger
  readonly host: Host
  /** The leases of the runs that are driven. */
  readonly leases: HeldLeases
  /** The agents that it knows. */
  readonly agents: AgentRegistry
  /** The models that its runs may be given. */
  readonly models: KnownModels
  readonly defaults: RunDefaults
  /** Makes the context of a run that is taken up and is given none. */
  readonly contextOf?: (run: RecordedRun) => unknown
  /** Text of replies is passed on before it is on record. */
  readonly passesLiveText: boolean
  /** For a run whose agent has other code now. */
  readonly onDrift: 'continue' | 'refuse'
  /** Makes ids of runs and keys of inbox entries, unique for ever. */
  readonly newId: () => RunId
  /** How the last runs of sessions ended here. */
  readonly ends: KnownEnds
  readonly runs: Runs
}

/** Options of runs that are given no others. */
export interface RunDefaults {
  readonly model?: Model
  readonly modelSettings?: ModelSettings
  readonly limits?: GivenLimits
  readonly recording?: RecordingPolicy
  /** Called for every run, beside its own. */
  readonly hooks: readonly RunHooks[]
}

/** The runs that this process holds, as each of them sees the others. */
export interface Runs {
  /** The runtime was drained, and continues no run. */
  readonly isDrained: boolean
  /** The run of an id: the one that this process holds, or one that it holds from here on. */
  driverOf(runId: RunId): DrivenRun
  /** Resolves to true if a process drives the run: this one, or another that has its lease. */
  isDriven(runId: RunId): Promise<boolean>
  /** A drive session of the run begins. */
  began(run: DrivenRun): void
  /** The drive session of the run has ended. */
  stopped(run: DrivenRun): void
  /** The writer of the run has failed: this process holds it no more. */
  failed(run: DrivenRun): void
  /** Reports the end of a run to its parent, if it has one. */
  reportEnd(state: RunState, context: unknown): Promise<void>
  /** Holds a run that has readers, since it publishes the events. */
  retain(run: DrivenRun): void
  /** The last reader of a run has left. */
  release(run: DrivenRun): void
}

/** A run, as this process holds it: `RunDriver`, for those that it stands on. */
export interface DrivenRun {
  readonly runId: RunId
  readonly parts: RuntimeParts
  /** Every event that this process reads or appends. */
  readonly live: LiveEvents
  /** Text before it is on record; absent unless the runtime is to pass it on. */
  readonly liveText: Subject<LiveText> | undefined
  readonly sent: SentCommands
  /** Given by the application, from the next drive on: a loop under way keeps what it began with. */
  readonly given: {
    readonly context: unknown
    readonly model: Model | undefined
    readonly hooks: readonly RunHooks[]
  }
  /** This process drives it. */
  readonly isDrivenHere: boolean
  /** The next drive takes it over also from a process that may be alive. */
  takesOver: boolean
  /** A call of this process waits for it, so that its parent needs no other report of its end. */
  isAwaited: boolean
  /** Its result when it stops, for a caller that handles a failure. */
  readonly result: Promise<RunResult>
  /** The result of the drive session under way, or of the last one. */
  readonly whenStopped: Promise<RunResult>
  /** Resolves when its end was reported to its own parent. */
  readonly reported: Promise<void>
  /** Takes the context of a parent or child run, unless the application said how to make this run's own. */
  inheritContext(context: unknown): void
  start(run: BegunRun): void
  drive(options: { readonly withChildren: boolean }): void
  resume(options: { readonly withChildren: boolean }): Promise<RunResult>
  send(command: OutsideCommand): Promise<CommandAcknowledgement>
  /** Lets what is in flight end, begins nothing, and returns the result of the run as it stopped. */
  drain(graceMs: number): Promise<RunResult>
}

/** How a run begins. */
export interface BegunRun {
  readonly prepare: () => Promise<ReadyStart>
  /** The run begins after another one that takes its place in the session. */
  readonly waits?: boolean
  /** A command to decide together with its start. */
  readonly asked?: () => OutsideCommand | undefined
}

/** A run that may begin, with the context that it begins with. */
export interface ReadyStart {
  readonly command: StartCommand
  readonly context: unknown
}
