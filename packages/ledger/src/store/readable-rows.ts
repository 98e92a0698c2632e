import type { Decoding } from '../format/body.ts'
import { historyNameIn, isPlain } from '../format/body.ts'
import type { EventRow, ReadableRow } from '../format/event-row.ts'
import { HistoryReader, readHistory, type HistoryRow } from '../format/history.ts'
import { Sealer, type Keyring } from '../format/keyring.ts'
import type { Store } from './store.ts'

/** Brings rows together with the keys and histories that their bodies need to be read. */
export class RowReader {
  readonly #store: Pick<Store, 'history'>
  readonly #keyring: Keyring | undefined
  readonly #histories = new HistoryReader()

  constructor(store: Pick<Store, 'history'>, keyring: Keyring | undefined) {
    this.#store = store
    this.#keyring = keyring
  }

  /** Forgets what was read before, so that all of it comes from the store again. */
  forget(): void {
    this.#histories.forget()
  }

  /** The rows themselves if none needs anything. */
  async readable<Row extends EventRow>(rows: readonly Row[]): Promise<readonly (Row & ReadableRow)[]> {
    if (rows.every(isPlain)) return rows
    const sealers = await this.#sealersOf(rows)
    const history = new Map<string, HistoryRow>()
    for (const row of rows) {
      const name = orUndefined(() => historyNameIn(row))
      if (name === undefined || history.has(name)) continue
      const read = await readHistory(
        name,
        this.#histories,
        (each) => history.get(each) ?? this.#store.history(each),
      )
      for (const [digest, found] of read) history.set(digest, found)
    }
    const decoding: Decoding = {
      sealers,
      hasKeys: this.#keyring !== undefined,
      history: (name, sealer) => this.#histories.restore(name, history, sealer),
    }
    return rows.map((row) => (isPlain(row) ? row : { ...row, decoding }))
  }

  async #sealersOf(rows: readonly EventRow[]): Promise<ReadonlyMap<string, Sealer>> {
    const sealers = new Map<string, Sealer>()
    if (this.#keyring === undefined) return sealers
    for (const id of new Set(rows.map((row) => row.key_id))) {
      const bytes = typeof id === 'string' ? await this.#keyring.key(id) : undefined
      if (typeof id === 'string' && bytes) sealers.set(id, new Sealer({ id, bytes }))
    }
    return sealers
  }
}

/** Damaged text refers to nothing here; decoding says so. */
function orUndefined<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
