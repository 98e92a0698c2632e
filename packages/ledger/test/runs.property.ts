import * as fc from 'fast-check'
import { describe, it } from 'vitest'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { tries } from '../../../scripts/testing/effort.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'
import { expectSoundRuns } from './support/random-run.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const numRuns = tries(30)

describe('a random run in a SQLite file, with crashes, cancels, denials and limits', () => {
  // oxlint-disable-next-line vitest/expect-expect -- `expectSoundRuns` does
  it('keeps every law, and is read back, folded, replayed and verified by another connection', async () => {
    await fc.assert(
      fc.asyncProperty(randomProgram, async (program) => {
        const path = emptyLedgerFile()
        const ledgers = [sqliteLedger(path), sqliteLedger(path, { readOnly: true })] as const
        await expectSoundRuns(program, ...ledgers)
        for (const ledger of ledgers) await ledger.close()
      }),
      { numRuns },
    )
  })
})
