import { appendCases } from './ledger-contract/append-cases.ts'
import { changeCases } from './ledger-contract/change-cases.ts'
import { closeCases } from './ledger-contract/close-cases.ts'
import { contentCases } from './ledger-contract/content-cases.ts'
import type { LedgerContractCase } from './ledger-contract/contract-case.ts'
import { findCases } from './ledger-contract/find-cases.ts'
import { historyCases } from './ledger-contract/history-cases.ts'
import { inboxCases } from './ledger-contract/inbox-cases.ts'
import { listCases } from './ledger-contract/list-cases.ts'
import { lostAcknowledgementCases } from './ledger-contract/lost-acknowledgement-cases.ts'
import { malformedCases } from './ledger-contract/malformed-cases.ts'
import { nameCases } from './ledger-contract/name-cases.ts'
import { onceCases } from './ledger-contract/once-cases.ts'
import { readCases } from './ledger-contract/read-cases.ts'
import { restCases } from './ledger-contract/rest-cases.ts'
import { searchCases } from './ledger-contract/search-cases.ts'
import { sessionCases } from './ledger-contract/session-cases.ts'
import { sharedCases } from './ledger-contract/shared-cases.ts'
import { tailCases } from './ledger-contract/tail-cases.ts'
import { takeOverCases } from './ledger-contract/take-over-cases.ts'

export type { LedgerContractCase, OpenLedger } from './ledger-contract/contract-case.ts'

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
  ...tailCases,
  ...contentCases,
  ...inboxCases,
  ...changeCases,
  ...restCases,
  ...closeCases,
  ...sharedCases,
]
