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
const numRuns = Math.ceil(Number(process.env['TALLYSTICK_RUNS'] ?? 300) / 3)

describe('random runs over one SQLite file, with crashes, cancels, denials and limits', () => {
  let folder: string
  let path: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tallystick-runs-'))
    path = join(folder, 'runs.db')
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  it('keep every law, and are read back, folded and replayed by another connection as they were', async () => {
    const ledger = sqliteLedger(path)
    await fc.assert(
      fc.asyncProperty(randomProgram, async (program) => {
        const { events, result } = await playProgram(program, { ledger })
        expect(checkLaws(events)).toEqual([])
        const reader = sqliteLedger(path, { readOnly: true })
        const read: RuntimeEvent[] = []
        for await (const event of reader.read(result.runId)) read.push(event)
        expect(read).toEqual(events)
        const state = await foldTo(reader, result.runId)
        const { turns, toolCalls, usage } = state.totals
        expect(result).toMatchObject({ seq: state.seq, turns, toolCalls, usage })
        const replayed = await replayRun(reader, result.runId, () => idleAgentOf(program))
        expect(replayed).toEqual({ runId: result.runId, events: events.length })
        await reader.close()
      }),
      { numRuns },
    )
    await ledger.close()
  })

  it('verify as sound, every one, chain and laws', async () => {
    const ledger = sqliteLedger(path, { readOnly: true })
    let runs = 0
    for await (const verdict of verifyLedger(ledger)) {
      expect(verdict).toMatchObject({ ok: true })
      if (verdict.scope === 'run') runs++
    }
    expect(runs).toBeGreaterThanOrEqual(numRuns / 2)
    await ledger.close()
  })
})
