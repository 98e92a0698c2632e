import type { Ledger } from '@tallystick/core'
import { listReachableAgents } from '@tallystick/core/internal'
import { checkLaws } from '@tallystick/testkit'
import { foldTo, verifyLedger } from '@tallystick/ledger'
import { replayRun } from '@tallystick/replay'
import { postgresLedger } from '@tallystick/ledger/postgres'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { connectionString, freshSchema, hasPostgres } from './support/postgres-database.ts'
import { watchedLedger } from '@tallystick/testkit'
import { createIdleAgent, playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const numRuns = tries(20)

async function inLedgers(work: (writer: Ledger, reader: Ledger) => Promise<void>): Promise<void> {
  const schema = freshSchema()
  const ledgers: readonly Ledger[] = [false, true].map((readOnly) =>
    postgresLedger({ connectionString, schema, readOnly }),
  )
  try {
    await work(...(ledgers as readonly [Ledger, Ledger]))
  } finally {
    for (const ledger of ledgers) await ledger.close()
  }
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a random run in Postgres, with crashes, cancels, denials and limits', () => {
  it('keeps every law, and is read back, folded, replayed and verified by another ledger', async () => {
    await fc.assert(
      fc.asyncProperty(randomProgram, async (program) => {
        await inLedgers(async (writer, reader) => {
          const { events, others, result } = await playProgram(program, watchedLedger(writer))
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
        })
      }),
      { numRuns },
    )
  })
})
