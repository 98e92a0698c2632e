import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createRuntime, type Ledger, type RuntimeEvent } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { requireWhole, turnsScript, type Script } from '../subjects/script.ts'
import { agentOf, scriptedModel, seenOf } from '../subjects/tallystick.ts'
import type { Trial } from './case.ts'

/** A run in a ledger file, and its script. */
export interface RecordedRun {
  readonly path: string
  readonly script: Script
  readonly events: readonly RuntimeEvent[]
}

/** Drives a run of so many turns, and leaves its ledger closed. */
export async function recordedRun(trial: Trial, turns: number): Promise<RecordedRun> {
  const script = turnsScript(turns)
  const path = fileIn(trial, 'recorded')
  const ledger = sqliteLedger(path)
  const agent = agentOf(script, scriptedModel(script))
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Look.')
  requireWhole(script, await seenOf(run))
  const events = await Array.fromAsync(ledger.read(run.id))
  await ledger.close()
  return { path, script, events }
}

/** Copies events to a new ledger, a thousand in each append. */
export async function copyEvents(events: readonly RuntimeEvent[], ledger: Ledger): Promise<void> {
  for (let start = 0; start < events.length; start += 1_000) {
    const batch = events.slice(start, start + 1_000)
    const runId = (batch[0] as RuntimeEvent).runId
    await ledger.append(runId, { expectedSeq: start, epoch: 1 }, batch, { durability: 'barrier' })
  }
}

/** The path of a ledger file that is not there yet. */
export function fileIn(trial: Trial, name: string): string {
  const folder = join(trial.folder, name)
  mkdirSync(folder)
  return join(folder, 'runs.db')
}
