import type { RuntimeEvent } from '@tallystick/core'
import { checkLaws, idleAgentOf, playProgram } from '@tallystick/core/testing'
import { randomProgram } from '@tallystick/core/testing/random'
import { foldTo, replayRun, verifyLedger } from '@tallystick/ledger'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { freshSchema, hasPostgres, openLedger } from './support/postgres-database.ts'
import { watched } from './support/postgres-outside.ts'

/** Property runs: more with TALLYSTICK_RUNS in the environment. */
const numRuns = Math.ceil(Number(process.env['TALLYSTICK_RUNS'] ?? 300) / 10)

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)(
  'random runs in one Postgres schema, with crashes, cancels, denials and limits',
  () => {
    it('keep every law, and are read back, folded, replayed and verified by another ledger', async () => {
      const schema = freshSchema()
      const { ledger, outside } = watched(openLedger(schema))
      const reader = openLedger(schema, { readOnly: true })
      let runs = 0
      await fc.assert(
        fc.asyncProperty(randomProgram, async (program) => {
          // Runs share a ledger, so their ids must differ.
          const { events, result } = await playProgram(
            { ...program, randomness: ++runs },
            { ledger, outside },
          )
          expect(checkLaws(events)).toEqual([])
          const read: RuntimeEvent[] = []
          for await (const event of reader.read(result.runId)) read.push(event)
          expect(read).toEqual(events)
          const { totals, seq } = await foldTo(reader, result.runId)
          const { turns, toolCalls, usage } = totals
          expect(result).toMatchObject({ seq, turns, toolCalls, usage })
          const replayed = await replayRun(reader, result.runId, () => idleAgentOf(program))
          expect(replayed).toEqual({ runId: result.runId, events: events.length })
        }),
        { numRuns },
      )
      const verdicts = await Array.fromAsync(verifyLedger(reader))
      expect(verdicts.map(({ ok }) => ok)).toEqual(Array.from({ length: runs + 1 }, () => true))
    })
  },
)
