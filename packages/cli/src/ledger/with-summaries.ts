import type { Ledger } from '@tallystick/core'
import { LedgerUnavailableError } from '@tallystick/core'
import { projectionLag, type ProjectionOptions } from '@tallystick/ledger'
import type { CommandContext } from '../command/command-context.ts'
import { countEvents } from './count-events.ts'
import { withLedger } from './open-ledger.ts'
import { withProgress } from '../view/text/progress.ts'

/** So many events are folded sooner than the ledger is opened to keep what they come to. */
const maxEventsInMemory = 2_000

/** An open ledger, with what reading summaries of its runs needs. */
export interface SummarizedLedger {
  readonly ledger: Ledger
  readonly options: ProjectionOptions
  /** The context in which the line of progress goes away before something else is written. */
  readonly context: CommandContext
}

/**
 * Opens a ledger to read summaries of all its runs. When its projections lag far, they are updated first, if the
 * ledger can be written; else the summaries are read without writing anything.
 */
export async function withSummaries<Result>(
  context: CommandContext,
  ledgerPath: string,
  use: (opened: SummarizedLedger) => Promise<Result>,
): Promise<Result> {
  const opened = await withLedger(ledgerPath, 'read', async (ledger) => {
    const lag = (await projectionLag(ledger)) ?? 0
    return lag > maxEventsInMemory ? { lag } : { result: await summarizing(context, ledger, { lag, use }) }
  })
  if ('result' in opened) return opened.result
  const { lag } = opened
  return await withWritable(ledgerPath, (ledger) => summarizing(context, ledger, { lag, use }))
}

/** A ledger that was opened to read keeps no summaries. */
function summarizing<Result>(
  context: CommandContext,
  ledger: Ledger,
  { lag, use }: { readonly lag: number; readonly use: (opened: SummarizedLedger) => Promise<Result> },
): Promise<Result> {
  return withProgress(
    context,
    async () => (lag > 0 ? lag : await countEvents(ledger)),
    (progress) => use({ ledger, context: progress.context, options: { onProgress: progress.add } }),
  )
}

/** Opens a ledger to write, so that it keeps what is computed; to read where it cannot be written. */
export async function withWritable<Result>(
  ledgerPath: string,
  use: (ledger: Ledger) => Promise<Result>,
): Promise<Result> {
  let isWritable = false
  try {
    return await withLedger(ledgerPath, 'write', async (ledger) => {
      // Opens the store, and changes nothing of it.
      await ledger.runs({ limit: 1 })[Symbol.asyncIterator]().next()
      isWritable = true
      return await use(ledger)
    })
  } catch (error) {
    if (isWritable || !(error instanceof LedgerUnavailableError)) throw error
  }
  return await withLedger(ledgerPath, 'read', use)
}
