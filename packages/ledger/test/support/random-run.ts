import type { Ledger } from '@tallystick/core'
import { listReachableAgents } from '@tallystick/core/internal'
import { foldTo, verifyLedger } from '@tallystick/ledger'
import { replayRun } from '@tallystick/replay'
import { checkLaws, watchedLedger } from '@tallystick/testkit'
import { expect } from 'vitest'
import { createIdleAgent, playProgram } from '../../../../scripts/testing/programs/play-program.ts'
import type { Program } from '../../../../scripts/testing/programs/program.ts'

/** Plays a program on one ledger, and expects that another one over the same store reads, folds, replays and verifies its runs. */
export async function expectSoundRuns(program: Program, writer: Ledger, reader: Ledger): Promise<void> {
  const { events, others, result } = await playProgram(program, watchedLedger(writer))
  const agents = new Map(listReachableAgents(createIdleAgent(program)).map((agent) => [agent.name, agent]))
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
}
