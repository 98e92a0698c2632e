import type { AgentOptions, Ledger, Tool } from '@tallystick/core'
import type { ModelHarness } from '../model-contract/case.ts'
import { modelContract } from '../model-contract/model-contract.ts'
import { explain, LedgerRecord, ModelRecord, requireInTime } from './explained.ts'
import { ledgerContract, type LedgerContractCase } from './ledger-contract.ts'
import { bindPolicy, type PolicyContractOptions } from './policy-contract.ts'
import { bindTool, type ToolContractOptions } from './tool-contract.ts'

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
   * Binds every promise of the `Model` port to an adapter. Cases that need what `harness.lacks` names are left out. A case that
   * takes longer than `patienceMs` has failed (default: 30 000).
   *
   * ```ts
   * for (const { promise, run } of contractOf.model(httpHarness({ model: (baseURL) => myModel({ baseURL }), … }))) test(promise, run)
   * ```
   */
  model(
    harness: ModelHarness,
    options?: { readonly patienceMs?: number | undefined },
  ): readonly ContractCase[]
  /**
   * Binds every promise of a tool to yours: what it reports, how it stops, and that it takes effect once, through crashes, cancels,
   * timeouts and reruns. `inputs` are played one by one; `effects` counts what the tool did to the world so far.
   *
   * ```ts
   * for (const { promise, run } of contractOf.tool(refund, { inputs: [{ order: 'A-7' }], effects: () => refunds.length })) test(promise, run)
   * ```
   */
  tool(tool: Tool, options: ToolContractOptions): readonly ContractCase[]
  /**
   * Binds the promises of an approval policy to yours, of an agent or of a runtime: `calls` are what it decides about, beside hostile
   * calls. The `approval` of one tool is part of that tool.
   *
   * ```ts
   * for (const { promise, run } of contractOf.policy(approval, { calls: [{ name: 'refund', input: { euros: 80 } }] })) test(promise, run)
   * ```
   */
  policy(
    policy: NonNullable<AgentOptions<unknown>['approval']>,
    options?: PolicyContractOptions,
  ): readonly ContractCase[]
}

export const contractOf: Contracts = {
  tool: bindTool,
  policy: bindPolicy,
  ledger: (makeStore, { lacks = [] } = {}) =>
    ledgerContract
      .filter(({ needs }) => needs === undefined || !lacks.includes(needs))
      .map(({ promise, run }) => ({
        promise,
        run: async () => {
          const store = await makeStore()
          const opened: Ledger[] = []
          const record = new LedgerRecord()
          const open = async (): Promise<Ledger> => {
            const ledger = await store.open()
            opened.push(ledger)
            return record.note(ledger)
          }
          try {
            await explain(
              { promise, subject: 'ledger' },
              () => run(open),
              () => record.toPage(),
            )
          } finally {
            for (const ledger of opened) await ledger.close()
            await store.remove?.()
          }
        },
      })),
  model: (harness, { patienceMs = 30_000 } = {}) =>
    modelContract
      .filter(({ needs }) => needs === undefined || !harness.lacks?.includes(needs))
      .map(({ promise, run }) => ({
        promise,
        run: async () => {
          const record = new ModelRecord()
          const play = (): Promise<void> =>
            requireInTime(run(record.note(harness)), patienceMs, 'The adapter has not come to an end')
          try {
            await explain({ promise, subject: 'model' }, play, () => record.toPage())
          } finally {
            await record.close()
          }
        },
      })),
}
