import { appendCases, lostAcknowledgementCases, malformedCases } from './append.ts'
import { changeCases, sharedCases } from './changes.ts'
import { closeCases } from './close.ts'
import { contentCases, historyCases } from './content.ts'
import { dueCases } from './due.ts'
import { askedCases, findCases, searchCases } from './find.ts'
import { inboxCases } from './inbox.ts'
import { leaseCases, takeOverCases } from './leases.ts'
import { nameCases, onceCases, sessionCases } from './once.ts'
import { listCases, readCases } from './read.ts'
import type { LedgerContractCase } from './scenario.ts'
import { tailCases } from './tail.ts'

export type { LedgerContractCase, OpenLedger } from './scenario.ts'

/**
 * Every promise of the `Ledger` port as a case that a store keeps or breaks. It needs no test framework:
 *
 * ```ts
 * for (const { promise, needs, run } of ledgerContract) {
 *   test(promise, async () => {
 *     const store = await emptyStore()
 *     await run(() => store.open())
 *   })
 * }
 * ```
 */
export const ledgerContract: readonly LedgerContractCase[] = [
  ...appendCases,
  ...lostAcknowledgementCases,
  ...onceCases,
  ...malformedCases,
  ...nameCases,
  ...takeOverCases,
  ...readCases,
  ...sessionCases,
  ...historyCases,
  ...listCases,
  ...findCases,
  ...searchCases,
  ...askedCases,
  ...tailCases,
  ...contentCases,
  ...inboxCases,
  ...changeCases,
  ...leaseCases,
  ...dueCases,
  ...closeCases,
  ...sharedCases,
]
