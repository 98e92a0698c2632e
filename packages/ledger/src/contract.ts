import type { Ledger } from '@tallystick/core'
import { formatLegibly, option, requireOptions } from '@tallystick/core/internal'
import { ledgerContract, type LedgerContractCase } from '@tallystick/testkit/contract'

/** Collects unhandled rejections, and errors thrown from timers. */
class StrayFaults {
  #first: unknown
  #isAny = false
  readonly #onFault = (fault: unknown): void => {
    if (!this.#isAny) this.#first = fault
    this.#isAny = true
  }

  constructor() {
    process.on('unhandledRejection', this.#onFault)
    process.on('uncaughtException', this.#onFault)
  }

  /** Returns the first fault so far, and forgets it. Waits until what was left behind has come to light. */
  async take(): Promise<{ readonly fault: unknown } | undefined> {
    await new Promise<void>((resolve) => void setImmediate(resolve))
    if (!this.#isAny) return undefined
    const fault = this.#first
    this.#isAny = false
    this.#first = undefined
    return { fault }
  }

  /** Ends the watch. */
  stop(): void {
    process.off('unhandledRejection', this.#onFault)
    process.off('uncaughtException', this.#onFault)
  }
}

export { ledgerContract, type LedgerContractCase, type OpenLedger } from '@tallystick/testkit/contract'

/** The store of one case, which is empty at first. */
export interface EmptyStore {
  /** Opens a ledger over the store, as one process would. Called again it opens another over the same. */
  readonly open: () => Ledger | Promise<Ledger>
  /** Removes the store, once its ledgers are closed. */
  readonly remove?: () => void | Promise<void>
  /** Abilities that the store does not have; promises that need them are skipped. */
  readonly lacks?: readonly NonNullable<LedgerContractCase['needs']>[]
}

export type MakeStore = () => EmptyStore | Promise<EmptyStore>

export interface PromiseVerdict {
  readonly promise: string
  readonly verdict: 'kept' | 'broken' | 'skipped'
  /** If it is not kept: what was expected and what was found, or what the store lacks. */
  readonly why?: string
}

/** Options of `checkContract`. */
export interface ContractOptions {
  /** Only promises that contain this text. */
  readonly only?: string | undefined
  /** How long a store may take for one promise. Default 30 000. */
  readonly limitMs?: number | undefined
}

const { anyFunction, anyText, fields, maybe, milliseconds, valueThat } = option
const contractOptions = fields<ContractOptions>({ only: maybe(anyText), limitMs: maybe(milliseconds) })

const emptyStore = valueThat(
  '{ open, remove?, lacks? }, whose open() opens a ledger over the store',
  (value) => typeof (Object(value) as Partial<EmptyStore>).open === 'function',
)

/**
 * Tests which promises of the `Ledger` port a store keeps, each on an empty store. The verdict also reports rejections
 * that the store leaves unhandled, and errors thrown from its timers, which do not end the process. Rejects
 * only if no store can be made at all, and with `ConfigurationError` for wrong options and for a value that is not a store.
 */
export async function* checkContract(
  makeStore: MakeStore,
  options: ContractOptions = {},
): AsyncGenerator<PromiseVerdict> {
  requireOptions('checkContract', anyFunction, makeStore, 'the first argument')
  requireOptions('checkContract', contractOptions, options)
  const { only = '', limitMs = 30_000 } = options
  const stray = new StrayFaults()
  try {
    for (const contractCase of ledgerContract) {
      if (!contractCase.promise.includes(only)) continue
      const store = await makeStore()
      requireOptions('checkContract', emptyStore, store, 'what the first argument returns')
      const verdict = await judgePromise(contractCase, store, limitMs)
      const left = await stray.take()
      yield left && verdict.verdict !== 'broken'
        ? { ...verdict, verdict: 'broken', why: `the store left behind ${describeFault(left.fault)}` }
        : verdict
    }
  } finally {
    stray.stop()
  }
}

async function judgePromise(
  { promise, needs, run }: LedgerContractCase,
  store: EmptyStore,
  limitMs: number,
): Promise<PromiseVerdict> {
  const opened: Ledger[] = []
  const open = async (): Promise<Ledger> => {
    const ledger = await store.open()
    opened.push(ledger)
    return ledger
  }
  const isSkipped = needs !== undefined && store.lacks?.includes(needs) === true
  const fault = isSkipped
    ? undefined
    : ((await findFaultWithin(limitMs, () => run(open))) ??
      (await findFaultWithin(limitMs, async () => {
        for (const ledger of opened) await ledger.close()
      })))
  // Who hangs or fails in a case may have left something open.
  await findFaultWithin(
    limitMs,
    async () => void (await Promise.allSettled(opened.map(async (ledger) => ledger.close()))),
  )
  const removal = await findFaultWithin(limitMs, async () => store.remove?.())
  const broken = fault ?? (removal && `its store cannot be removed: ${removal}`)
  if (broken !== undefined) return { promise, verdict: 'broken', why: broken }
  return isSkipped
    ? { promise, verdict: 'skipped', why: `the store is not ${needs}` }
    : { promise, verdict: 'kept' }
}

/** Longer than this the message of an error is cut: it may hold a whole answer. */
const MAX_FAULT = 2_000

/** The fault, if there is one; a timeout is one, too. */
async function findFaultWithin(limitMs: number, work: () => Promise<void>): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`nothing has come of it within ${limitMs} ms`), limitMs)
  })
  const fault = work().then(() => undefined, describeFault)
  return Promise.race([fault, late]).finally(() => clearTimeout(timer))
}

function describeFault(error: unknown): string {
  if (!(error instanceof Error)) return formatLegibly(error)
  const text = `${error.name}: ${error.message}`
  return text.length > MAX_FAULT ? `${text.slice(0, MAX_FAULT)} …` : text
}
