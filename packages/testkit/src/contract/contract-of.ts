import type { Ledger } from '@tallystick/core'
import type { ModelHarness } from '../model-contract/case.ts'
import { modelContract } from '../model-contract/model-contract.ts'
import { ledgerContract, type LedgerContractCase } from './ledger-contract.ts'

/** The store of one case, empty at first. */
export interface EmptyStore {
  /** Opens a ledger over the store, as one process would. Called again it opens another one over the same store. */
  readonly open: () => Ledger | Promise<Ledger>
  /** Removes the store, once its ledgers are closed. */
  readonly remove?: () => void | Promise<void>
}

/** A promise of a port, bound to what is tested. It needs no test framework: `run` rejects if the promise is broken. */
export interface ContractCase {
  readonly promise: string
  readonly run: () => Promise<void>
}

/** The contracts of the ports, each bound to an implementation: `contractOf.ledger(makeStore)`. */
export interface Contracts {
  /**
   * Binds every promise of the `Ledger` port to a store. Each case makes a store, runs, and closes and removes what it opened.
   * `lacks` names what the store cannot do (`durable`: keep its content after `close()`; `shared`: be open twice at once);
   * the cases that need it are left out.
   *
   * ```ts
   * for (const { promise, run } of contractOf.ledger(() => ({ open: () => sqliteLedger(freshFile()) }))) test(promise, run)
   * ```
   */
  ledger(
    makeStore: () => EmptyStore | Promise<EmptyStore>,
    options?: { readonly lacks?: readonly NonNullable<LedgerContractCase['needs']>[] },
  ): readonly ContractCase[]
  /**
   * Binds every promise of the `Model` port to an adapter. Cases that need what `harness.lacks` names are left out.
   *
   * ```ts
   * for (const { promise, run } of contractOf.model(httpHarness({ model: (baseURL) => myModel({ baseURL }), … }))) test(promise, run)
   * ```
   */
  model(harness: ModelHarness): readonly ContractCase[]
}

export const contractOf: Contracts = {
  ledger: (makeStore, { lacks = [] } = {}) =>
    ledgerContract
      .filter(({ needs }) => needs === undefined || !lacks.includes(needs))
      .map(({ promise, run }) => ({
        promise,
        run: async () => {
          const store = await makeStore()
          const opened: Ledger[] = []
          try {
            await run(async () => {
              const ledger = await store.open()
              opened.push(ledger)
              return ledger
            })
          } finally {
            for (const ledger of opened) await ledger.close()
            await store.remove?.()
          }
        },
      })),
  model: (harness) =>
    modelContract
      .filter(({ needs }) => needs === undefined || !harness.lacks?.includes(needs))
      .map(({ promise, run }) => ({ promise, run: () => run(harness) })),
}
