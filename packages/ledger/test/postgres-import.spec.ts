import { memoryLedger, type Ledger } from '@tallystick/core'
import { playProgram } from '@tallystick/testkit'
import { randomProgram } from '@tallystick/testkit/random'
import { importEvents, verifyLedger, verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { linesOfLedger } from './support/exported.ts'
import { freshSchema, hasPostgres, openLedger } from './support/postgres-database.ts'
import { recordRun } from './support/record-run.ts'
import { temporaryFile } from './support/temporary-folder.ts'

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('runs that move from a SQLite file to Postgres and back', () => {
  async function move(from: Ledger, to: Ledger): Promise<void> {
    const lines = await linesOfLedger(from)
    expect(await importEvents(to, lines)).toMatchObject({ events: lines.length, present: 0 })
    expect(await importEvents(to, lines)).toMatchObject({ events: 0, present: lines.length })
    expect(await linesOfLedger(to)).toEqual(lines)
    expect(await Array.fromAsync(to.runs())).toEqual(await Array.fromAsync(from.runs()))
    expect(await Array.fromAsync(verifyLedger(to), ({ ok }) => ok)).not.toContain(false)
  }

  it('are the same there, byte for byte, with the same writers, and verify', async () => {
    const origin = sqliteLedger(temporaryFile())
    const back = sqliteLedger(temporaryFile())
    onTestFinished(async () => {
      await origin.close()
      await back.close()
    })
    await recordRun(origin, 1)
    // Random runs bring crashes, and so writers after the first.
    for (const [index, program] of fc.sample(randomProgram, { numRuns: 5, seed: 4 }).entries()) {
      const memory = memoryLedger()
      await playProgram({ ...program, randomness: 100 + index }, { ledger: memory })
      await importEvents(origin, await linesOfLedger(memory))
    }
    const epochs = (await Array.fromAsync(origin.runs())).map(({ head }) => head.epoch)
    expect(Math.max(...epochs)).toBeGreaterThan(1)
    const postgres = openLedger(freshSchema())
    await move(origin, postgres)
    await move(postgres, back)
    expect(await linesOfLedger(back)).toEqual(await linesOfLedger(origin))
  })

  it('are noted one after the other where several processes import at once', async () => {
    const schema = freshSchema()
    const parts = await Promise.all(
      [0, 1, 2].map(async (part) => {
        const memory = memoryLedger()
        for (let index = 1; index <= 4; index++) await recordRun(memory, part * 4 + index)
        return await linesOfLedger(memory)
      }),
    )
    await Promise.all(parts.map((lines, part) => importEvents(openLedger(schema), lines, { by: `${part}` })))
    const ledger = openLedger(schema)
    expect(await Array.fromAsync(verifyLedger(ledger), ({ ok }) => ok)).not.toContain(false)
    const runs = await Array.fromAsync(ledger.runs())
    const notes = await Promise.all(runs.map(async ({ runId }) => (await verifyRun(ledger, runId)).imported))
    const by = notes.map((note) => note?.by ?? '')
    expect(by.toSorted()).toEqual(['0000', '1111', '2222'].flatMap((four) => four.split('')))
  })
})
