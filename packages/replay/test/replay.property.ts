import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Ledger, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { listReachableAgents } from '@tallystick/core/internal'
import { copyPrefix } from '@tallystick/testkit'
import { replayRun } from '@tallystick/replay'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import { createIdleAgent, playProgram } from '../../../scripts/testing/programs/play-program.ts'
import type { Program } from '../../../scripts/testing/programs/program.ts'
import {
  randomProgram as anyProgram,
  retryingProgram,
} from '../../../scripts/testing/programs/random-program.ts'

const stillProgram = fc.oneof({ weight: 5, arbitrary: anyProgram }, { weight: 1, arbitrary: retryingProgram })

/** Any program, also under a clock that advances between a message and what follows from it. */
const randomProgram = fc
  .tuple(stillProgram, fc.boolean())
  .map(([program, ticking]): Program => ({ ...program, ticking }))

const numRuns = tries(300)

async function ledgerOf(events: readonly RuntimeEvent[]): Promise<Ledger> {
  const ledger = memoryLedger()
  await copyPrefix(events, ledger)
  return ledger
}

async function replay(random: Program, events: readonly RuntimeEvent[], change?: { instructions: string }) {
  const agents = new Map(
    listReachableAgents(createIdleAgent(random, change)).map((agent) => [agent.name, agent]),
  )
  return await replayRun(await ledgerOf(events), events[0]!.runId, (name) => agents.get(name)!)
}

describe('replayRun', () => {
  it('drives every random run again to the same events, crashes, denials and cancels included', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, async (random) => {
          const { events, others } = await playProgram(random)
          for (const run of [events, ...others]) {
            expect(await replay(random, run)).toEqual({ runId: run[0]!.runId, events: run.length })
          }
        })
        .beforeEach(newTask),
      { numRuns },
    )
  })

  it('replays a run that is still under way as far as it goes', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, fc.nat(), async (random, cut) => {
          const { events } = await playProgram(random)
          const prefix = events.slice(0, 2 + (cut % (events.length - 1)))
          expect((await replay(random, prefix)).divergence).toBeUndefined()
        })
        .beforeEach(newTask),
      { numRuns: Math.ceil(numRuns / 3) },
    )
  })

  it('finds the first event that differs when the code has changed', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, async (random) => {
          const { events } = await playProgram(random)
          const { divergence } = await replay(random, events, { instructions: 'Something else.' })
          expect(divergence?.seq).toBe(1)
          expect(divergence?.differences.map(({ path }) => path).sort()).toEqual([
            'definition.digest',
            'definition.instructions',
          ])
        })
        .beforeEach(newTask),
      { numRuns: Math.ceil(numRuns / 10) },
    )
  })

  it('finds a recorded decision that the machine would not take', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, async (random) => {
          const { events } = await playProgram(random)
          const finished = events.at(-1)
          if (finished?.type !== 'run_finished') return
          const reason = finished.reason === 'answered' ? 'cancelled' : 'answered'
          const forged = [...events.slice(0, -1), { ...finished, reason } as RuntimeEvent]
          const { divergence } = await replay(random, forged)
          expect(divergence).toMatchObject({
            seq: finished.seq,
            differences: [{ path: 'reason', recorded: reason }],
          })
        })
        .beforeEach(newTask),
      { numRuns: Math.ceil(numRuns / 10) },
    )
  })
})
