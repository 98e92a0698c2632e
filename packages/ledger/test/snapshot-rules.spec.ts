import { createRuntime, defineAgent, type Ledger, type RunId } from '@tallystick/core'
import { manualClock, scriptedModel, seededRandom, testTool } from '@tallystick/core/testing'
import { foldTo } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { projectionDatabaseOf } from '../src/projection/tables/projection-database.ts'
import { snapshotPlaces } from '../src/projection/snapshot/snapshots.ts'
import { temporaryFile } from './support/temporary-folder.ts'

/** A run of some turns whose tool answers with a text of so many characters, and the places of its snapshots. */
async function recorded(turns: number, characters: number) {
  const ledger: Ledger = sqliteLedger(temporaryFile())
  onTestFinished(() => ledger.close())
  const steps = Array.from({ length: turns }, (_step, at) => ({
    toolCalls: [{ name: 'look', input: { at } }],
  }))
  const agent = defineAgent({
    name: 'looker',
    instructions: 'Look.',
    model: scriptedModel([...steps, { text: 'Done.' }]),
    tools: [testTool({ name: 'look', run: () => 'x'.repeat(characters) })],
    limits: { maxTurns: turns + 1 },
  })
  const host = { clock: manualClock(), random: seededRandom(1) }
  const { runId } = await createRuntime({ ledger, agents: [agent], host }).run(agent, 'Look.').result
  const places = (): Promise<readonly number[]> => {
    const database = projectionDatabaseOf(ledger)
    return database === undefined ? Promise.resolve([]) : snapshotPlaces(database, runId)
  }
  const last = (await ledger.head(runId))?.seq ?? 0
  return { ledger, runId, places, last }
}

/** Where a snapshot is after a fold up to an event. */
async function afterFold(
  { ledger, places }: { readonly ledger: Ledger; readonly places: () => Promise<readonly number[]> },
  runId: RunId,
  seq: number,
): Promise<readonly number[]> {
  await foldTo(ledger, runId, seq)
  return await places()
}

describe('a fold keeps its state as a snapshot', () => {
  it('after 200 events, and after 50 where the run rests', async () => {
    const bed = await recorded(30, 1)
    const { runId, last } = bed
    expect(last).toBeGreaterThan(300)
    expect(await afterFold(bed, runId, 199)).toEqual([])
    expect(await afterFold(bed, runId, 200)).toEqual([200])
    expect(await afterFold(bed, runId, last - 1)).toEqual([200])
    expect(await afterFold(bed, runId, last)).toEqual([200, last])
  })

  it('after fewer events where they hold a mebibyte of text', async () => {
    const bed = await recorded(12, 100_000)
    const { runId, last } = bed
    expect(last).toBeLessThan(200)
    const results = (await Array.fromAsync(bed.ledger.read(runId))).filter(
      ({ type }) => type === 'tool_result',
    )
    const [ninth, tenth, eleventh] = results.slice(8).map(({ seq }) => seq) as [number, number, number]
    expect(ninth).toBeGreaterThan(64)
    expect(await afterFold(bed, runId, ninth)).toEqual([])
    expect(await afterFold(bed, runId, tenth)).toEqual([])
    expect(await afterFold(bed, runId, eleventh)).toEqual([eleventh])
  })

  it('of a run of 64 events or more', async () => {
    const brief = await recorded(4, 1)
    expect(brief.last).toBeGreaterThan(50)
    expect(brief.last).toBeLessThan(64)
    expect(await afterFold(brief, brief.runId, brief.last)).toEqual([])
    const longer = await recorded(6, 1)
    expect(longer.last).toBeGreaterThanOrEqual(64)
    expect(await afterFold(longer, longer.runId, longer.last)).toEqual([longer.last])
  })
})
