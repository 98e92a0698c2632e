import type { RunHooks } from '../agent/hooks.ts'
import type { RecordedRun } from '../agent/prepare-turn.ts'
import type { AgentRegistry, KnownModels } from '../agent/registry.ts'
import type { RecordingPolicy } from '../events/agent-definition.ts'
import type { OutsideCommand, StartCommand } from '../events/commands.ts'
import type { GivenLimits } from '../events/limits.ts'
import type { ModelSettings } from '../events/model-request.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Model } from '../models/model.ts'
import type { Host } from '../values/host.ts'
import type { RunId } from '../values/ids.ts'
import type { Stretch } from './drive.ts'
import type { HeldLeases } from './leases.ts'
import type { RunRegistry } from './run-registry.ts'

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
  /** For a run whose agent, or which itself, has other code now. */
  readonly onDrift: 'continue' | 'refuse' | undefined
  /** Makes ids of runs and keys of inbox entries, unique for ever. */
  readonly newId: () => RunId
  readonly runs: RunRegistry
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

export interface BegunRun {
  readonly prepare: () => Promise<ReadyStart>
  /** The run begins after another one that takes its place in the session. */
  readonly waits?: boolean
  /** Its start is recorded, and no more. */
  readonly isQueued?: boolean
  /** It is driven for a stretch; otherwise until it stops. */
  readonly stretch?: Stretch | undefined
  /** A command to decide together with its start. */
  readonly asked?: () => OutsideCommand | undefined
}

/** A run that may begin, with the context that it begins with. */
export interface ReadyStart {
  readonly command: StartCommand
  readonly context: unknown
}
