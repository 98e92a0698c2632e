import type { RunId } from '../../vocabulary/values/ids.ts'
import type { Agent } from '../agent/agent.ts'
import type { CoordinatorOptions } from './coordinator-options.ts'
import { RunCoordinator } from './run-coordinator.ts'

type OwnOptions = 'runId' | 'coordinatorOf' | 'isDriven' | 'onDriving' | 'onFailure'

/**
 * The coordinators of one runtime, one a run: so that a run is driven once in it.
 * A coordinator is held as long as its run is driven or has a subscriber; otherwise the handles hold it.
 */
export class CoordinatorRegistry {
  readonly #options: Omit<CoordinatorOptions, OwnOptions>
  readonly #coordinators = new Map<RunId, WeakRef<RunCoordinator>>()
  readonly #driving = new Set<RunCoordinator>()
  readonly #watched = new Set<{ readonly coordinator: RunCoordinator }>()
  readonly #reports = new Set<Promise<void>>()
  readonly #forget = new FinalizationRegistry<RunId>((runId) => {
    if (this.#coordinators.get(runId)?.deref() === undefined) this.#coordinators.delete(runId)
  })

  constructor(options: Omit<CoordinatorOptions, OwnOptions>) {
    this.#options = options
  }

  /** The coordinator of a run: the one that is there, or a new one; in which `own` stands for the agent of its name. */
  coordinatorOf(runId: RunId, own?: Agent<unknown>): RunCoordinator {
    const there = this.#coordinators.get(runId)?.deref()
    if (there) return there
    const coordinator: RunCoordinator = new RunCoordinator({
      ...this.#options,
      runId,
      findAgent: (name) => (name === own?.name ? own : this.#options.findAgent(name)),
      coordinatorOf: (other) => this.coordinatorOf(other),
      isDriven: (other) => this.isDriven(other),
      onDriving: (driving) => (driving ? this.#driving.add(coordinator) : this.#driving.delete(coordinator)),
      onFailure: () => this.#coordinators.delete(runId),
      onEnd: (state, context) => this.#report(this.#options.onEnd(state, context)),
    })
    this.#coordinators.set(runId, new WeakRef(coordinator))
    this.#forget.register(coordinator, runId)
    return coordinator
  }

  /** Resolves when no run is driven any more, and every end was reported to its parent. */
  async idle(): Promise<void> {
    while (this.#driving.size > 0 || this.#reports.size > 0) {
      await Promise.allSettled([
        ...this.#reports,
        ...[...this.#driving].map((coordinator) => coordinator.whenStopped),
      ])
    }
  }

  #report(reporting: Promise<void>): Promise<void> {
    const report: Promise<void> = reporting.finally(() => this.#reports.delete(report))
    this.#reports.add(report)
    return report
  }

  /** Holds a coordinator for a subscriber, until the returned function is called. */
  retain(coordinator: RunCoordinator): () => void {
    const watched = { coordinator }
    const [leave, stopWatching] = [coordinator.notice.watch(), coordinator.elsewhere.watch()]
    this.#watched.add(watched)
    return () => {
      leave()
      stopWatching()
      this.#watched.delete(watched)
    }
  }

  /** Whether a process drives a run: this one, or another that the ledger knows of. */
  async isDriven(runId: RunId): Promise<boolean | undefined> {
    if (this.#coordinators.get(runId)?.deref()?.driving) return true
    return await this.#options.ledger.isDriven?.(runId)
  }

  /** The coordinators whose runs are being driven. */
  get driving(): readonly RunCoordinator[] {
    return [...this.#driving]
  }
}
