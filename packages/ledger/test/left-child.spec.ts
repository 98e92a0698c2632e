// A child run whose store answers only after its parent was cancelled, waited out its grace time, and ended.
import { memoryLedger, type Ledger } from '@tallystick/core'
import { checkBudgets } from '@tallystick/testkit'
import { verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import { demandCancelled, playFamily } from './support/left-child.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const stores: Readonly<Record<string, () => Ledger>> = {
  memory: () => memoryLedger(),
  SQLite: () => sqliteLedger(emptyLedgerFile()),
}

describe.each(Object.entries(stores))('a child run that its parent had to leave, in %s', (_name, open) => {
  it.each([{}, { maxTotalTokens: 100_000 }])(
    'is counted for no less than it uses, from whichever append on it was late, with limits %j',
    async (limits) => {
      let late = 0
      for (const heldFrom of [1, 2, 3]) {
        const store = open()
        const { parent, child } = await playFamily(store, { heldFrom, limits })
        for (const [first] of [parent, child]) {
          expect(await verifyRun(store, first!.runId)).toMatchObject({ ok: true, events: expect.any(Number) })
        }
        expect(checkBudgets([parent, child])).toEqual([])
        const counted = parent.find((event) => event.type === 'tool_result')
        if (counted?.child?.estimated === true) late++
        expect(child.at(-1)).toMatchObject({ type: 'run_finished', reason: 'cancelled' })
        await store.close()
      }
      expect(late).toBeGreaterThan(0)
    },
  )

  it('is cancelled, whichever call of the ledger is late', async () => {
    await expect(
      demandCancelled(open, effort({ quick: [1], thorough: [1, 2, 3, 4] })),
    ).resolves.toBeUndefined()
  })
})
