import { LedgerUnavailableError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { type EventOf } from '@tallystick/core/vocabulary'
import type { EventRow } from '../record/event-row.ts'
import type { Keyring } from '../content/payload/keyring.ts'
import { Sealer } from '../content/payload/encrypted-bytes.ts'
import { keyIdOfRow } from '../content/event/decoded-events.ts'

/** How many runs are remembered; of others it is looked up how they began. */
const maxRuns = 4096

/**
 * The keys that runs are sealed with: of its subject, as its first event was, or none. A run that has begun without a
 * key continues without.
 */
export class RunKeys {
  readonly #keyring: Keyring | undefined
  readonly #firstRow: (runId: RunId) => Promise<EventRow | undefined>
  /** Ids of keys; null where nothing is sealed. The most recently used run is last. */
  readonly #known = new Map<RunId, string | null>()

  /** `firstRow` answers the first event of a run that still has its payload. */
  constructor(keyring: Keyring | undefined, firstRow: (runId: RunId) => Promise<EventRow | undefined>) {
    this.#keyring = keyring
    this.#firstRow = firstRow
  }

  /** Whether a run is known not to be sealed, so that nothing has to be asked. */
  isPlain(runId: RunId): boolean {
    return this.#known.get(runId) === null
  }

  /** Calls `append` with what seals the events of a run. */
  async sealing<T>(
    runId: RunId,
    events: readonly RuntimeEvent[],
    append: (sealer: Sealer | undefined) => Promise<T>,
  ): Promise<T> {
    try {
      return await append(this.isPlain(runId) ? undefined : await this.sealerFor(runId, events))
    } catch (error) {
      // Another process may have begun the run, and for another subject.
      this.#known.delete(runId)
      throw error
    }
  }

  /**
   * What seals the events that are appended to a run. Rejects with `LedgerUnavailableError` where the run is sealed and
   * its key is not to be had: what would be written in the clear could not be erased.
   */
  async sealerFor(runId: RunId, events: readonly RuntimeEvent[]): Promise<Sealer | undefined> {
    const [first] = events
    if (first?.type === 'run_started') return await this.#begin(runId, first)
    const known = this.#known.get(runId)
    const id = known === undefined ? await this.#find(runId) : known
    if (id === null) return undefined
    const bytes = await this.#keyring?.key(id)
    if (bytes === undefined) throw this.#unavailable(runId)
    this.#remember(runId, id)
    return new Sealer({ id, bytes })
  }

  async #begin(runId: RunId, { subject }: EventOf<'run_started'>): Promise<Sealer | undefined> {
    if (subject === undefined || this.#keyring === undefined) {
      this.#remember(runId, null)
      return undefined
    }
    const key = await this.#keyring.keyOf(subject)
    this.#remember(runId, key.id)
    return new Sealer(key)
  }

  async #find(runId: RunId): Promise<string | null> {
    const row = await this.#firstRow(runId)
    const id = (row && keyIdOfRow(row)) ?? null
    this.#remember(runId, id)
    return id
  }

  #remember(runId: RunId, id: string | null): void {
    this.#known.delete(runId)
    this.#known.set(runId, id)
    const [oldest] = this.#known.keys()
    if (this.#known.size > maxRuns && oldest !== undefined) this.#known.delete(oldest)
  }

  #unavailable(runId: RunId): LedgerUnavailableError {
    const way =
      this.#keyring === undefined
        ? 'and this ledger was opened without keys. Open it with the keyring that the run was started with.'
        : 'and that key was destroyed, so the run was erased and cannot be continued. Start another run.'
    return new LedgerUnavailableError(
      `The content of run ${runId} is encrypted with the key of its subject, ${way} Nothing was written.`,
    )
  }
}
