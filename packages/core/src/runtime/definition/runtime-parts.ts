import type { RunHooks } from '../agent/hooks.ts'
import type { Host } from '../../values/host.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Model } from '../../models/model.ts'
import type { GivenLimits } from '../../events/limits.ts'
import type { ModelSettings } from '../../events/model-request.ts'
import type { RecordingPolicy, RunLabels } from '../../events/agent-definition.ts'
import type { ParentRef } from '../../events/event-parts.ts'
import type { RunId } from '../../values/ids.ts'
import type { HeldLeases } from '../drive/held-leases.ts'
import type { KnownModels } from './known-models.ts'
import type { AgentRegistry } from './registered-agents.ts'

/** What the runs of a runtime are given, where they are given nothing else. */
export interface RunDefaults {
  readonly model?: Model
  readonly modelSettings?: ModelSettings
  readonly limits?: GivenLimits
  readonly recording?: RecordingPolicy
  /** Called for every run, beside its own. */
  readonly hooks: readonly RunHooks[]
}

/** The recorded facts of a run, from which `contextOf` makes its context. */
export interface RecordedRun {
  readonly runId: RunId
  /** The active agent. */
  readonly agent: string
  readonly sessionId?: string
  /** The person or customer that the run is about. */
  readonly subject?: string
  /** Who started it. */
  readonly owner?: string
  readonly labels?: RunLabels
  readonly parent?: ParentRef
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
