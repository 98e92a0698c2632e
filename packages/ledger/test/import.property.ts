import { memoryLedger } from '@tallystick/core'
import { importEvents, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { linesOfLedger } from './support/exported.ts'
import { temporaryFolder } from './support/temporary-folder.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const numRuns = tries(15)

describe('importEvents', () => {
  it('moves random runs, crashes and take-overs included, through a file and back byte for byte', async () => {
    const folder = temporaryFolder()
    let files = 0
    await fc.assert(
      fc.asyncProperty(randomProgram, fc.nat(), async (program, cut) => {
        const { ledger } = await playProgram(program)
        const lines = await linesOfLedger(ledger)
        const file = sqliteLedger(`${folder}/${++files}.db`)
        await importEvents(file, lines.slice(0, cut % lines.length))
        await importEvents(file, lines)
        expect(await linesOfLedger(file)).toEqual(lines)
        expect(await Array.fromAsync(verifyLedger(file), ({ ok }) => ok)).not.toContain(false)
        const back = memoryLedger()
        await importEvents(back, await linesOfLedger(file))
        expect(await linesOfLedger(back)).toEqual(lines)
        await file.close()
      }),
      { numRuns },
    )
  })
})
