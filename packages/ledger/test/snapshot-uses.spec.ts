import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Ledger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { manualClock, scriptedModel, seededRandom, testTool } from '@tallystick/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { countEventsToFold } from '../src/projection/fold-to.ts'
import { listSnapshotPlaces, encodeSnapshot } from '../src/projection/snapshots.ts'
import { getDatabase } from '../src/store/store.ts'
import { tamper } from './support/raw-database.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

/** A ledger with a run whose one answer is of 600 deltas, of which a row holds up to 256. */
async function answered(): Promise<{
  readonly path: string
  readonly ledger: Ledger
  readonly runId: RunId
}> {
  const path = emptyLedgerFile()
  const ledger = sqliteLedger(path)
  onTestFinished(() => ledger.close())
  const words = Array.from({ length: 600 }, (_, index) => `word${index} `)
  const model = scriptedModel([{ text: words.join('') }])
  const agent = defineAgent({ name: 'teller', instructions: '', model, tools: [] })
  const host = { clock: manualClock(), random: seededRandom(1) }
  const live = memoryLedger()
  const { id: runId, result } = createRuntime({ ledger: live, agents: [agent], host }).run(agent, 'Tell.')
  await result
  const recorded = await Array.fromAsync(live.read(runId))
  const first = recorded.find(({ type }) => type === 'assistant_text_delta')
  // The same run, as a wire with more and smaller pieces would have brought it.
  const events = recorded
    .flatMap((event): readonly RuntimeEvent[] => {
      if (event.type !== 'assistant_text_delta') return [event]
      return event === first ? words.map((text) => ({ ...event, text })) : []
    })
    .map((event, index) => ({ ...event, seq: index + 1 }))
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  return { path, ledger, runId }
}

describe('how many events a fold reads', () => {
  it('given snapshots, when they are counted, then from the nearest one before the event on', async () => {
    const { path, ledger, runId } = await answered()
    expect(await countEventsToFold(ledger, runId, 300)).toBe(300)
    await foldTo(ledger, runId, 250)
    expect(await countEventsToFold(ledger, runId, 300)).toBe(50)
    expect(await countEventsToFold(ledger, runId, 250)).toBe(0)
    expect(await countEventsToFold(ledger, runId, 249)).toBe(249)
    tamper(path, (database) => database.exec('drop table snapshot'))
    expect(await countEventsToFold(ledger, runId, 300)).toBe(300)
    expect(await countEventsToFold(memoryLedger(), runId, 300)).toBeUndefined()
  })
})

/** A run of some turns whose tool answers with texts of so many characters, and the places of its snapshots. */
async function recorded(turns: number, characters: number | ((turn: number) => number)) {
  const ledger: Ledger = sqliteLedger(emptyLedgerFile())
  onTestFinished(() => ledger.close())
  const steps = Array.from({ length: turns }, (_step, at) => ({
    toolCalls: [{ name: 'look', input: { at, nothing: null } }],
  }))
  const agent = defineAgent({
    name: 'looker',
    instructions: 'Look.',
    model: scriptedModel([...steps, { text: 'Done.' }]),
    tools: [
      testTool({
        name: 'look',
        run: ({ input }) =>
          'x'.repeat(typeof characters === 'number' ? characters : characters(Number(input['at']))),
      }),
    ],
    limits: { maxTurns: turns + 1 },
  })
  const host = { clock: manualClock(), random: seededRandom(1) }
  const { runId } = await createRuntime({ ledger, agents: [agent], host }).run(agent, 'Look.').result
  const places = (): Promise<readonly number[]> => {
    const database = getDatabase(ledger)
    return database === undefined ? Promise.resolve([]) : listSnapshotPlaces(database, runId)
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
  it('after 200 events, in the place of an earlier one', async () => {
    const bed = await recorded(60, 1)
    const { runId, last } = bed
    expect(last).toBeGreaterThan(450)
    expect(await afterFold(bed, runId, 199)).toEqual([])
    expect(await afterFold(bed, runId, 200)).toEqual([200])
    expect(await afterFold(bed, runId, 399)).toEqual([200])
    expect(await afterFold(bed, runId, 400)).toEqual([400])
    expect(await afterFold(bed, runId, 300)).toEqual([400])
    expect(await afterFold(bed, runId, last)).toEqual([400])
  })

  it('of four mebibytes at most', async () => {
    const most = 4 * 1024 * 1024
    const large = (spare: number) => recorded(30, (turn) => (turn === 29 ? spare : 65_000))
    const sizeOf = async ({ ledger, runId }: Awaited<ReturnType<typeof large>>): Promise<number> =>
      encodeSnapshot(await foldTo(ledger, runId, undefined, { snapshots: false }), []).length
    // The text is in the state twice. An empty one would be an ending of its own.
    const spare = 1 + Math.floor((most - (await sizeOf(await large(1)))) / 2)
    const [less, more] = [await large(spare), await large(spare + 1)]
    expect(most - (await sizeOf(less))).toBeLessThan(2)
    expect((await sizeOf(more)) - most).toBeGreaterThan(0)
    expect(await afterFold(less, less.runId, less.last)).toEqual([less.last])
    expect(await afterFold(more, more.runId, more.last)).toEqual([])
  })
})
