import type { Host } from '../../ports/clock.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import type { KnownModels } from './known-models.ts'
import type { AgentRegistry } from './registered-agents.ts'

/** What a runtime is made of, given once to each part that drives runs. */
export interface RuntimeParts {
  readonly ledger: Ledger
  readonly host: Host
  /** The agents that it knows. */
  readonly agents: AgentRegistry
  /** The models that its runs may be given. */
  readonly models: KnownModels
  /** What it does with a run whose agent has other code now. */
  readonly onDrift: 'continue' | 'refuse'
  /** Makes ids of runs and keys of inbox entries, unique for ever. */
  readonly newId: () => RunId
}
