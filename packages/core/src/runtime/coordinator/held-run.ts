import { LiveEvents } from '../reading/event-source.ts'
import type { Model } from '../../models/model.ts'
import type { RunId } from '../../values/ids.ts'
import { SentCommands } from '../commands/sent-commands.ts'
import type { RunHooks } from '../agent/hooks.ts'
import type { RuntimeParts } from '../definition/runtime-parts.ts'
import type { Drive } from '../drive/drive.ts'
import type { Coordinators } from './coordinators.ts'

const noHooks: readonly RunHooks[] = []

/** What this process holds of one run: shared by its coordinator, its drive sessions and its command delivery. */
export class HeldRun {
  readonly runId: RunId
  readonly parts: RuntimeParts
  readonly runs: Coordinators
  /** Every event that this process reads or appends. */
  readonly live: LiveEvents = new LiveEvents()
  readonly sent: SentCommands
  /** What the application gives the run from here on. */
  context: unknown
  /** Whether the next drive takes it over also from a process that may live. */
  takesOver = false
  /** The model that the application gives it. */
  model: Model | undefined
  /** The hooks that the application gives it. */
  hooks: readonly RunHooks[] = noHooks

  constructor(runId: RunId, parts: RuntimeParts, runs: Coordinators) {
    this.runId = runId
    this.parts = parts
    this.runs = runs
    this.sent = new SentCommands(runId, parts.ledger, parts.host.clock)
  }

  /** What the run is driven with from here on: a loop keeps the context that it began with. */
  get drive(): Drive {
    const { runId, parts, runs, sent, live, context, model } = this
    const { hooks: defaults } = parts.defaults
    const hooks = this.hooks === noHooks ? defaults : [...defaults, ...this.hooks]
    return {
      runId,
      parts,
      children: runs.children,
      sent,
      live,
      context,
      model,
      hooks,
    }
  }
}
