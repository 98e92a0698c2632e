import type { Ledger } from '../../ledger/ledger.ts'
import type { RunId } from '../../values/ids.ts'
import type { RuntimeParts } from '../definition/runtime-parts.ts'
import type { EventSource, LiveEvents } from '../reading/event-source.ts'
import type { CoordinatorRegistry } from './coordinator-registry.ts'
import type { RunCoordinator } from './run-coordinator.ts'

/** Where the readers of a handle get the events of its run from. */
export class HandleSource implements EventSource {
  readonly #coordinator: RunCoordinator
  readonly #coordinators: CoordinatorRegistry
  readonly #parts: RuntimeParts

  constructor(coordinator: RunCoordinator, coordinators: CoordinatorRegistry, parts: RuntimeParts) {
    this.#coordinator = coordinator
    this.#coordinators = coordinators
    this.#parts = parts
  }

  get runId(): RunId {
    return this.#coordinator.runId
  }

  get ledger(): Ledger {
    return this.#parts.ledger
  }

  get live(): LiveEvents {
    return this.#coordinator.live
  }

  retain(): void {
    this.#coordinators.retain(this.#coordinator)
  }

  release(): void {
    this.#coordinators.release(this.#coordinator)
  }

  onThrow(error: unknown): void {
    this.#parts.host.report(error, `A subscriber of run ${this.runId} threw`)
  }

  onObserved(): void {
    this.#coordinator.notice.markObserved()
  }

  onUnhandledError(error: unknown): void {
    this.#coordinator.notice.onUnhandledError(error)
  }
}
