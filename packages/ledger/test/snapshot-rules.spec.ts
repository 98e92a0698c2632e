import { createRuntime, defineAgent, type Ledger, type RunId } from '@tallystick/core'
import { manualClock, scriptedModel, seededRandom, testTool } from '@tallystick/testkit'
import { foldTo, outlineTo } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { chooseReplaced, listSnapshotPlaces, encodeSnapshot } from '../src/projection/snapshots.ts'
import { databaseOf } from '../src/store/store.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

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
    const database = databaseOf(ledger)
    return database === undefined ? Promise.resolve([]) : listSnapshotPlaces(database, runId)
  }
  const last = (await ledger.head(runId))?.seq ?? 0
  return { ledger, runId, places, last }
}

/** How much text there is in a value, keys not counted. */
function textIn(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce<number>((sum, item) => sum + textIn(item), 0)
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
    expect(last).toBeGreaterThan(250)
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
    const brief = await recorded(6, 1)
    expect(brief.last).toBeGreaterThan(50)
    expect(brief.last).toBeLessThan(64)
    expect(await afterFold(brief, brief.runId, brief.last)).toEqual([])
    const longer = await recorded(8, 1)
    expect(longer.last).toBeGreaterThanOrEqual(64)
    expect(await afterFold(longer, longer.runId, longer.last)).toEqual([longer.last])
  })

  it('after exactly as many events, and from exactly the event on, as those rules say', async () => {
    const [early, late] = [await recorded(30, 1), await recorded(30, 1)]
    const { last } = early
    expect(await afterFold(early, early.runId, last - 49)).toEqual([last - 49])
    expect(await afterFold(early, early.runId, last)).toEqual([last - 49])
    expect(await afterFold(late, late.runId, last - 50)).toEqual([last - 50])
    expect(await afterFold(late, late.runId, last)).toEqual([last - 50, last])
    const wordy = await recorded(12, 150_000)
    expect(await afterFold(wordy, wordy.runId, 63)).toEqual([])
    expect(await afterFold(wordy, wordy.runId, 64)).toEqual([64])
  })

  it('of a run that waits, too', async () => {
    const ledger: Ledger = sqliteLedger(emptyLedgerFile())
    onTestFinished(() => ledger.close())
    const looks = Array.from({ length: 8 }, (_step, at) => ({ toolCalls: [{ name: 'look', input: { at } }] }))
    const agent = defineAgent({
      ...{ name: 'payer', instructions: 'Pay.' },
      model: scriptedModel([...looks, { toolCalls: [{ name: 'pay', input: {} }] }]),
      tools: [testTool({ name: 'look' }), testTool({ name: 'pay', check: () => ({ kind: 'ask' }) })],
    })
    const host = { clock: manualClock(), random: seededRandom(1) }
    const { runId, status, seq } = await createRuntime({ ledger, agents: [agent], host }).run(agent, 'Pay.')
      .result
    expect(status).toBe('suspended')
    await foldTo(ledger, runId)
    const database = databaseOf(ledger)
    expect(database && (await listSnapshotPlaces(database, runId))).toEqual([seq])
  })

  it('at a mebibyte of text, and at no character less', async () => {
    const mebibyte = 1024 * 1024
    const wordy = (spare: number) => recorded(11, (turn) => (turn === 9 ? spare : 100_000))
    const textOf = async ({ ledger, runId }: Awaited<ReturnType<typeof wordy>>) => {
      const events = await Array.fromAsync(ledger.read(runId))
      const { seq = 0 } = events.filter(({ type }) => type === 'tool_result')[9] ?? {}
      return { seq, text: textIn(events.slice(0, seq)) }
    }
    const missing = mebibyte - (await textOf(await wordy(0))).text
    const [exact, less] = [await wordy(missing), await wordy(missing - 1)]
    const { seq, text } = await textOf(exact)
    expect(text).toBe(mebibyte)
    expect(await afterFold(less, less.runId, seq)).toEqual([])
    expect(await afterFold(exact, exact.runId, seq)).toEqual([seq])
  })

  it('of four mebibytes at most', async () => {
    const most = 4 * 1024 * 1024
    const large = (spare: number) => recorded(7, (turn) => (turn === 6 ? spare : 300_000))
    const sizeOf = async ({ ledger, runId }: Awaited<ReturnType<typeof large>>): Promise<number> =>
      encodeSnapshot(await outlineTo(ledger, runId, undefined, { snapshots: false }), []).length
    // The text is in the state twice. An empty one would be an ending of its own.
    const spare = 1 + Math.floor((most - (await sizeOf(await large(1)))) / 2)
    const [less, more] = [await large(spare), await large(spare + 1)]
    expect(most - (await sizeOf(less))).toBeLessThan(2)
    expect((await sizeOf(more)) - most).toBeGreaterThan(0)
    expect(await afterFold(less, less.runId, less.last)).toEqual([less.last])
    expect(await afterFold(more, more.runId, more.last)).toEqual([])
  })
})

describe('a snapshot gives way to another', () => {
  const places = [100, 200, 300, 400, 500, 600, 700, 800]
  it.each<readonly [string, number, readonly number[], readonly number[]]>([
    ['where there are eight at most', 800, places.slice(0, 7), []],
    ['where it is of the same event', 200, places, []],
    ['which is the first of those that lie as close', 900, places, [100]],
    ['by the place of its neighbours, not by its own', 900, places.with(0, 150).with(1, 201), [201]],
    ['which lies between the closest neighbours', 900, places.with(4, 410), [400]],
    ['which may be the one before it', 801, places, [800]],
    ['and is itself kept, though it lies between the closest', 150, places, [100]],
    ['and the last one stays', 50, places.with(5, 790).with(6, 799), [799]],
    ['in whatever order they are', 900, places.toReversed(), [100]],
    ['one after the other where there are more', 1100, [...places, 900, 1000], [100, 300, 500]],
  ])('%s', (_when, added, kept, gone) => {
    expect(chooseReplaced(added, kept)).toEqual(gone)
  })
})
