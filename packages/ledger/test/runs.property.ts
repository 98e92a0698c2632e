import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { listReachableAgents } from '@tallystick/core/internal'
import { checkLaws } from '@tallystick/testkit'
import { foldTo, verifyLedger } from '@tallystick/ledger'
import { replayRun } from '@tallystick/replay'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { tries } from '../../../scripts/testing/effort.ts'
import { watchedLedger } from '@tallystick/testkit'
import { emptyLedgerFile } from './support/temporary-folder.ts'
import { createIdleAgent, playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const numRuns = tries(30)

describe('a random run in a SQLite file, with crashes, cancels, denials and limits', () => {
  it('keeps every law, and is read back, folded, replayed and verified by another connection', async () => {
    await fc.assert(
      fc.asyncProperty(randomProgram, async (program) => {
        const path = emptyLedgerFile()
        const ledger = sqliteLedger(path)
        const { events, others, result } = await playProgram(program, watchedLedger(ledger))
        const reader = sqliteLedger(path, { readOnly: true })
        const agents = new Map(
          listReachableAgents(createIdleAgent(program)).map((agent) => [agent.name, agent]),
        )
        for (const played of [events, ...others]) {
          const runId = played[0]?.runId ?? result.runId
          expect(checkLaws(played)).toEqual([])
          expect(await Array.fromAsync(reader.read(runId))).toEqual(played)
          const replayed = await replayRun(reader, runId, (name) => agents.get(name)!)
          expect(replayed).toEqual({ runId, events: played.length })
        }
        const { totals, seq } = await foldTo(reader, result.runId)
        const { turns, toolCalls, usage } = totals
        expect(result).toMatchObject({ seq, turns, toolCalls, usage })
        const verdicts = await Array.fromAsync(verifyLedger(reader))
        expect(verdicts.map(({ ok }) => ok)).toEqual(Array.from({ length: others.length + 2 }, () => true))
        await reader.close()
        await ledger.close()
      }),
      { numRuns },
    )
  })
})
