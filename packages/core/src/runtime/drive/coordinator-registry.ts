import type { RunId } from '../../vocabulary/values/ids.ts'
import type { Agent } from '../agent/agent.ts'
import type { HubOptions } from './coordinator-options.ts'
import { RunHub } from './run-coordinator.ts'

type OwnOptions = 'runId' | 'hubOf' | 'isDriven' | 'onDriving' | 'onFailure'

/**
 * The hubs of one runtime, one a run: so a run is driven once in it, and everyone who watches a run watches the same.
 * A hub is held as long as its run is driven or somebody is subscribed; for the rest, who has a handle holds it.
 */
export class HubRegistry {
  readonly #options: Omit<HubOptions, OwnOptions>
  readonly #hubs = new Map<RunId, WeakRef<RunHub>>()
  readonly #driving = new Set<RunHub>()
  readonly #watched = new Set<{ readonly hub: RunHub }>()
  readonly #reports = new Set<Promise<void>>()
  readonly #forget = new FinalizationRegistry<RunId>((runId) => {
    if (this.#hubs.get(runId)?.deref() === undefined) this.#hubs.delete(runId)
  })

  constructor(options: Omit<HubOptions, OwnOptions>) {
    this.#options = options
  }

  /** The hub of a run: the one that is there, or a new one; in which `own` stands for the agent of its name. */
  hubOf(runId: RunId, own?: Agent<unknown>): RunHub {
    const there = this.#hubs.get(runId)?.deref()
    if (there) return there
    const hub: RunHub = new RunHub({
      ...this.#options,
      runId,
      agentNamed: (name) => (name === own?.name ? own : this.#options.agentNamed(name)),
      hubOf: (other) => this.hubOf(other),
      isDriven: (other) => this.isDriven(other),
      onDriving: (driving) => (driving ? this.#driving.add(hub) : this.#driving.delete(hub)),
      onFailure: () => this.#hubs.delete(runId),
      onEnd: (state, context) => this.#report(this.#options.onEnd(state, context)),
    })
    this.#hubs.set(runId, new WeakRef(hub))
    this.#forget.register(hub, runId)
    return hub
  }

  /** Resolves when nothing is driven any more, and whoever had to know of an end does. */
  async idle(): Promise<void> {
    while (this.#driving.size > 0 || this.#reports.size > 0) {
      await Promise.allSettled([...this.#reports, ...[...this.#driving].map((hub) => hub.rest)])
    }
  }

  #report(told: Promise<void>): Promise<void> {
    const report: Promise<void> = told.finally(() => this.#reports.delete(report))
    this.#reports.add(report)
    return report
  }

  /** Holds a hub for somebody who is subscribed, until the answer is called. */
  hold(hub: RunHub): () => void {
    const watched = { hub }
    const [leave, stopWatching] = [hub.notice.watch(), hub.elsewhere.watch()]
    this.#watched.add(watched)
    return () => {
      leave()
      stopWatching()
      this.#watched.delete(watched)
    }
  }

  /** Whether a process drives a run: this one, or another that the ledger knows of. */
  async isDriven(runId: RunId): Promise<boolean | undefined> {
    if (this.#hubs.get(runId)?.deref()?.driving) return true
    return await this.#options.ledger.isDriven?.(runId)
  }

  /** The hubs whose runs are being driven. */
  get driving(): readonly RunHub[] {
    return [...this.#driving]
  }
}
