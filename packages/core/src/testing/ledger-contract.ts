import { appendCases } from './contract-writes/append-cases.ts'
import { askedCases } from './contract-reads/asked-cases.ts'
import { changeCases } from './contract-reads/change-cases.ts'
import { closeCases } from './contract-writes/close-cases.ts'
import { contentCases } from './contract-writes/content-cases.ts'
import type { LedgerContractCase } from './contract/contract-case.ts'
import { findCases } from './contract-reads/find-cases.ts'
import { historyCases } from './contract-writes/history-cases.ts'
import { inboxCases } from './contract-writes/inbox-cases.ts'
import { leaseCases } from './contract-drivers/lease-cases.ts'
import { listCases } from './contract-reads/list-cases.ts'
import { lostAcknowledgementCases } from './contract-writes/lost-acknowledgement-cases.ts'
import { malformedCases } from './contract-writes/malformed-cases.ts'
import { nameCases } from './contract-writes/name-cases.ts'
import { onceCases } from './contract-writes/once-cases.ts'
import { readCases } from './contract-reads/read-cases.ts'
import { searchCases } from './contract-reads/search-cases.ts'
import { sessionCases } from './contract-writes/session-cases.ts'
import { sharedCases } from './contract-reads/shared-cases.ts'
import { tailCases } from './contract-reads/tail-cases.ts'
import { takeOverCases } from './contract-drivers/take-over-cases.ts'

export type { LedgerContractCase, OpenLedger } from './contract/contract-case.ts'

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
  ...closeCases,
  ...sharedCases,
]
