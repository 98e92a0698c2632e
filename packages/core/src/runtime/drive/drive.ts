import type { LiveEvents } from '../reading/event-source.ts'
import type { Model } from '../../models/model.ts'
import type { RunId } from '../../values/ids.ts'
import type { ChildRuns } from '../children/child-runs.ts'
import type { SentCommands } from '../commands/sent-commands.ts'
import type { RunHooks } from '../agent/hooks.ts'
import type { RuntimeParts } from '../definition/runtime-parts.ts'

/** What a run is driven with. */
export interface Drive {
  readonly runId: RunId
  readonly parts: RuntimeParts
  readonly children: ChildRuns
  readonly sent: SentCommands
  /** Publishes every event once it is appended. */
  readonly live: LiveEvents
  /** What the application gave this run, or what makes it. */
  readonly context: unknown
  /** The model that the run is given, where this process was handed it. */
  readonly model: Model | undefined
  /** Those of the runtime and of the run. */
  readonly hooks: readonly RunHooks[]
}
