import { describe, it } from 'vitest'
import type { Ledger } from '../src/ledger/ledger.ts'
import { memoryLedger } from '../src/ledger/memory-ledger.ts'
import { ledgerContract } from '@tallystick/testkit/contract'

describe('memoryLedger keeps the promises of a ledger', () => {
  // Nothing of it outlives close(), and no second ledger can look into it.
  const meaningful = ledgerContract.filter(({ needs }) => needs === undefined)
  // oxlint-disable-next-line vitest/expect-expect -- a case rejects when its promise is broken
  it.each(meaningful)('$promise', async ({ run }) => {
    const opened: Ledger[] = []
    await run(async () => {
      const ledger = memoryLedger()
      opened.push(ledger)
      return ledger
    })
    for (const ledger of opened) await ledger.close()
  })
})
