import { LedgerUnavailableError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { Sealer, type Keyring } from '../format/keyring.ts'

/** How many runs are remembered; of others it is looked up how they began. */
const maxRuns = 4096

/**
 * The keys that runs are sealed with: that of the subject, as the first event was, or none. A run that has begun without a
 * key continues without.
 */
export class RunKeys {
  readonly #keyring: Keyring | undefined
  readonly #keyIdOf: (runId: RunId) => Promise<string | null | undefined>
  /** Ids of keys; null where nothing is sealed. The most recently used run is last. */
  readonly #known = new Map<RunId, string | null>()

  constructor(keyring: Keyring | undefined, keyIdOf: (runId: RunId) => Promise<string | null | undefined>) {
    this.#keyring = keyring
    this.#keyIdOf = keyIdOf
  }

  /** Whether nothing has to be asked before events of a run are written: it is known not to be sealed. */
  isPlain(runId: RunId, events: readonly RuntimeEvent[]): boolean {
    const [first] = events
    if (this.#keyring === undefined && first?.type === 'run_started') {
      this.#remember(runId, null)
      return true
    }
    return this.#known.get(runId) === null && first?.type !== 'run_started'
  }

  /** Calls `append` with what seals the events of a run. */
  async sealing<T>(
    runId: RunId,
    events: readonly RuntimeEvent[],
    append: (sealer: Sealer | undefined) => Promise<T>,
  ): Promise<T> {
    try {
      return await append(await this.#sealerFor(runId, events))
    } catch (error) {
      // Another process may have begun the run, and for another subject.
      this.#known.delete(runId)
      throw error
    }
  }

  /** Rejects if the run is sealed and its key is not there: what would be written in the clear could not be erased. */
  async #sealerFor(runId: RunId, events: readonly RuntimeEvent[]): Promise<Sealer | undefined> {
    const [first] = events
    if (first?.type === 'run_started') {
      const { subject } = first
      const key = subject === undefined ? undefined : await this.#keyring?.keyOf(subject)
      this.#remember(runId, key?.id ?? null)
      return key && new Sealer(key)
    }
    const known = this.#known.get(runId)
    const id = known === undefined ? ((await this.#keyIdOf(runId)) ?? null) : known
    if (id === null) {
      this.#remember(runId, null)
      return undefined
    }
    const bytes = await this.#keyring?.key(id)
    if (bytes === undefined) throw this.#unavailable(runId)
    this.#remember(runId, id)
    return new Sealer({ id, bytes })
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

/**
 * Keeps the appends of a run in the order in which they were begun, where one of them has to wait for a key: an append that
 * overtook it would be a conflict.
 */
export class AppendOrder {
  /** The last append under way of each run that has one which waits; none of them rejects. */
  readonly #last = new Map<RunId, Promise<unknown>>()

  /** Calls `append` at once if it waits for nothing, and no earlier append of the run is waiting. */
  begin<T>(runId: RunId, waits: boolean, append: () => Promise<T>): Promise<T> {
    const before = this.#last.get(runId)
    if (!waits && before === undefined) return append()
    const appended = before ? before.then(append) : append()
    const ended = appended.then(
      () => {},
      () => {},
    )
    this.#last.set(runId, ended)
    void ended.then(() => {
      if (this.#last.get(runId) === ended) this.#last.delete(runId)
    })
    return appended
  }
}
