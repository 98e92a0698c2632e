import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { checkLaws, idleAgentOf, playProgram } from '@tallystick/core/testing'
import { randomProgram } from '@tallystick/core/testing/random'
import { foldTo, replayRun, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'

/** Property runs: more with TALLYSTICK_RUNS in the environment. */
const numRuns = Math.ceil(Number(process.env['TALLYSTICK_RUNS'] ?? 300) / 10)

describe('a random run in a SQLite file, with crashes, cancels, denials and limits', () => {
  let folder: string
  let files = 0
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tallystick-runs-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  it('keeps every law, and is read back, folded, replayed and verified by another connection', async () => {
    await fc.assert(
      fc.asyncProperty(randomProgram, async (program) => {
        const path = join(folder, `${++files}.db`)
        const ledger = sqliteLedger(path)
        const { events, result } = await playProgram(program, { ledger })
        expect(checkLaws(events)).toEqual([])
        const reader = sqliteLedger(path, { readOnly: true })
        const read: RuntimeEvent[] = []
        for await (const event of reader.read(result.runId)) read.push(event)
        expect(read).toEqual(events)
        const { totals, seq } = await foldTo(reader, result.runId)
        const { turns, toolCalls, usage } = totals
        expect(result).toMatchObject({ seq, turns, toolCalls, usage })
        const replayed = await replayRun(reader, result.runId, () => idleAgentOf(program))
        expect(replayed).toEqual({ runId: result.runId, events: events.length })
        const verdicts: boolean[] = []
        for await (const { ok } of verifyLedger(reader)) verdicts.push(ok)
        expect(verdicts).toEqual([true, true])
        await reader.close()
        await ledger.close()
      }),
      { numRuns },
    )
  })
})
