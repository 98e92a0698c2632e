import {
  LedgerDamagedError,
  memoryLedger,
  type Ledger,
  type RunId,
  LedgerConflictError,
  type RuntimeEvent,
} from '@tallystick/core'
import { importEvents, splitLines, readRunSummaries } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { hostileFiles, sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { ImportWriter } from '../src/import-events.ts'
import { linesOfLedger } from './support/exported.ts'
import { recordRun } from './support/record-run.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

type Line = Record<string, unknown> & { readonly runId: RunId; readonly seq: number; readonly epoch: number }

/** The lines of a recorded run: another one for each seed. */
async function linesFrom(seed: number): Promise<readonly Line[]> {
  const ledger = memoryLedger()
  await recordRun(ledger, seed)
  return (await linesOfLedger(ledger)).map((line) => JSON.parse(line) as Line)
}

function idOf([first]: readonly Line[]): RunId {
  if (first === undefined) throw new Error('The run has no lines.')
  return first.runId
}

/** Why an import was refused, and how many events the ledger holds then. */
async function refused(
  lines: Iterable<object>,
  ledger: Ledger = memoryLedger(),
): Promise<{ readonly message: string; readonly runs: readonly (readonly [string, number])[] }> {
  const texts = Array.from(lines, (line) => JSON.stringify(line))
  const error = await importEvents(ledger, texts).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(LedgerDamagedError)
  const runs = await Array.fromAsync(ledger.runs(), ({ runId, head }) => [runId, head.seq] as const)
  return { message: (error as Error).message, runs }
}

/** An event of a run that comes from another one. */
function from(lines: readonly Line[], parent: RunId, relation: string): readonly Line[] {
  return lines.map((line) =>
    line.seq === 1 ? { ...line, parent: { runId: parent, seq: 1, relation } } : line,
  )
}

describe('importEvents refuses, at its line,', () => {
  it.each([8_640_000_000_000_001, 253_402_300_800_000, -1e15, 1e300])(
    'a time that is not a date: %d',
    async (at) => {
      const lines = await linesFrom(1)
      const { message, runs } = await refused(lines.map((line) => (line.seq >= 3 ? { ...line, at } : line)))
      expect(message).toContain('Line 3 cannot be imported: An event is damaged at at: ')
      expect(message).toContain('expected milliseconds of the years 0 to 9999')
      expect(runs).toEqual([[idOf(lines), 2]])
    },
  )

  it.each(['child', 'fork', 'session', 'branch'])(
    'runs that come from one another in a circle (%s)',
    async (relation) => {
      const runs = [await linesFrom(1), await linesFrom(2), await linesFrom(3)] as const
      const ids = [idOf(runs[0]), idOf(runs[1]), idOf(runs[2])] as const
      const own = from(runs[0], ids[0], relation)
      expect(await refused(own)).toMatchObject({
        message: expect.stringContaining(
          `Line 1 cannot be imported: run ${ids[0]} says that it comes from itself.`,
        ),
        runs: [],
      })
      const circle = ids.map((id, index) => from(runs[index] ?? [], ids[(index + 1) % 3] ?? id, relation))
      const { length } = runs[0]
      const { message, runs: there } = await refused(circle.flat())
      expect(message).toContain(
        `Line ${2 * length + 1} cannot be imported: run ${ids[2]} says that it comes from`,
      )
      expect(there).toEqual([
        [ids[1], length],
        [ids[0], length],
      ])
    },
  )

  it('a circle of which a part was imported before', async () => {
    const [one, other] = [await linesFrom(1), await linesFrom(2)]
    const ledger = memoryLedger()
    const first = from(one, idOf(other), 'child')
    await importEvents(
      ledger,
      first.map((line) => JSON.stringify(line)),
    )
    const { message } = await refused(from(other, idOf(one), 'child'), ledger)
    expect(message).toContain('Line 1 cannot be imported')
  })

  it('an epoch that no run comes to, at once', async () => {
    const lines = await linesFrom(1)
    for (const epoch of [10_003, Number.MAX_SAFE_INTEGER]) {
      const { message } = await refused(lines.map((line) => (line.seq >= 3 ? { ...line, epoch } : line)))
      expect(message).toContain(`Line 3 cannot be imported: the epoch rises from 1 to ${epoch} at event 3`)
    }
    // Also where it rises a little at each of many events.
    const steps = lines.map((line) => ({ ...line, epoch: 1 + (line.seq - 1) * 4_000 }))
    expect((await refused(steps)).message).toContain(
      'Line 4 cannot be imported: the epoch rises from 8001 to 12001',
    )
  })

  it('every file of garbage, whatever it is, unless it says nothing at all', async () => {
    const taken: string[] = []
    for (const { name, bytes } of hostileFiles) {
      const ledger = memoryLedger()
      await importEvents(
        ledger,
        splitLines(
          (async function* () {
            yield bytes
          })(),
        ),
      ).then(
        () => taken.push(name),
        () => undefined,
      )
      expect({ name, runs: await Array.fromAsync(ledger.runs()) }).toEqual({ name, runs: [] })
    }
    expect(taken).toEqual(['nothing', 'one newline', 'only white space', 'very many empty lines'])
  })

  it('a file of one line that is cut off, and garbage after a whole run', async () => {
    const [line = ''] = (await linesFrom(1)).map((each) => JSON.stringify(each))
    await expect(importEvents(memoryLedger(), [line.slice(0, -9)])).rejects.toThrow(
      'Line 1 cannot be imported: it is cut off, and there is no whole event before it.',
    )
    const whole = (await linesFrom(1)).map((each) => JSON.stringify(each))
    for (const garbage of ['garbage', '{}}', '{"seq":1', 'null x']) {
      await expect(importEvents(memoryLedger(), [...whole, garbage])).rejects.toThrow(
        `Line ${whole.length + 1} cannot be imported: it is not JSON, and not the beginning of an event.`,
      )
    }
    for (const cut of ['{', '{"runId":"', line.slice(0, 40)]) {
      expect(await importEvents(memoryLedger(), [...whole, cut])).toMatchObject({
        torn: { line: whole.length + 1 },
      })
    }
  })
})

describe('importEvents', () => {
  it('takes a run whose parent is damaged in the ledger, and fails where the ledger cannot be read', async () => {
    const [one, other] = [await linesFrom(1), await linesFrom(2)]
    const child = from(one, idOf(other), 'child')
    const imported = async (fault: Error): Promise<readonly RunId[]> => {
      const ledger = memoryLedger()
      const read: Ledger['read'] = (runId, range) => {
        if (runId === idOf(other)) throw fault
        return ledger.read(runId, range)
      }
      const texts = child.map((line) => JSON.stringify(line))
      await importEvents({ ...ledger, read }, texts)
      return await Array.fromAsync(ledger.runs(), ({ runId }) => runId)
    }
    expect(await imported(new LedgerDamagedError('Event 1 is damaged.'))).toEqual([idOf(one)])
    await expect(imported(new TypeError('no database'))).rejects.toThrow('no database')
  })

  it('makes thousands of take-overs again in a few commits, as the run had them', async () => {
    const recorded = await linesFrom(1)
    const runId = idOf(recorded)
    const lines = recorded.map((line) => (line.seq >= 3 ? { ...line, epoch: 9_999 } : line))
    const path = emptyLedgerFile()
    const ledger = sqliteLedger(path)
    let [atOnce, mostAtOnce] = [0, 0]
    const counting: Ledger = {
      ...ledger,
      async acquire(id) {
        mostAtOnce = Math.max(mostAtOnce, ++atOnce)
        const head = await ledger.acquire(id)
        atOnce--
        return head
      },
    }
    await importEvents(
      counting,
      lines.map((line) => JSON.stringify(line)),
    )
    expect(mostAtOnce).toBe(250)
    expect(await ledger.head(runId)).toEqual({ seq: lines.length, epoch: 9_999 })
    expect(await Array.fromAsync(readRunSummaries(ledger), (run) => run.runId)).toEqual([runId])
    await ledger.close()
  })
})

/** The lines of a recorded run, whose epoch rises from these events on to these numbers. */
async function linesOf(rises: Readonly<Record<number, number>>): Promise<readonly string[]> {
  const ledger = memoryLedger()
  await recordRun(ledger, 1)
  let epoch = 1
  return (await linesOfLedger(ledger)).map((line) => {
    const event = JSON.parse(line) as { readonly seq: number }
    epoch = rises[event.seq] ?? epoch
    return JSON.stringify({ ...event, epoch })
  })
}

describe('an import of a run that was taken over', () => {
  it.each<readonly [string, Readonly<Record<number, number>>, number]>([
    ['without a break', { 3: 2, 4: 3, 5: 4 }, 4],
    ['ten thousand times without an event', { 3: 10_002 }, 10_002],
    ['as often in two steps', { 3: 5_002, 4: 10_003 }, 10_003],
  ])('makes its take-overs again: %s', async (_name, rises, epoch) => {
    const ledger = memoryLedger()
    const lines = await linesOf(rises)
    const report = await importEvents(ledger, lines)
    expect(report).toEqual({ runs: 1, events: lines.length, present: 0 })
    const [run] = await Array.fromAsync(ledger.runs())
    expect(run?.head).toEqual({ seq: lines.length, epoch })
    expect(await linesOfLedger(ledger)).toEqual(lines)
    expect(await importEvents(ledger, lines)).toEqual({ runs: 1, events: 0, present: lines.length })
  })

  it.each<readonly [string, Readonly<Record<number, number>>, string]>([
    ['more often than ten thousand times', { 3: 10_003 }, 'rises from 1 to 10003 at event 3'],
    ['as often in two steps', { 3: 5_002, 4: 10_004 }, 'rises from 5002 to 10004 at event 4'],
  ])('is refused where no event came of it %s', async (_name, rises, message) => {
    const ledger = memoryLedger()
    const refused = importEvents(ledger, await linesOf(rises))
    await expect(refused).rejects.toThrow(LedgerDamagedError)
    await expect(refused).rejects.toThrow(message)
  })

  it('is refused where its ledger has taken it over since', async () => {
    const ledger = memoryLedger()
    const lines = await linesOf({})
    await importEvents(ledger, lines.slice(0, 5))
    const [run] = await Array.fromAsync(ledger.runs())
    if (run) await ledger.acquire(run.runId)
    const refused = importEvents(ledger, lines)
    await expect(refused).rejects.toThrow(LedgerConflictError)
    await expect(refused).rejects.toThrow(
      /ends at event 5 in this ledger, and was taken over since, by writer 2/,
    )
  })
})

const [one, two] = [sampleRunId(1), sampleRunId(2)]
const fact = sampleFacts(one).cancel_requested

/** A writer of a ledger that only notes what is asked of it. */
function noting({ refuses = false } = {}) {
  const noted: string[] = []
  const append: Ledger['append'] = async (runId, { expectedSeq, epoch }, events, { durability }) => {
    noted.push(`${runId === one ? 'one' : 'two'} ${expectedSeq}+${events.length} ${epoch} ${durability}`)
    if (refuses) throw new Error('refused')
    return { seq: expectedSeq + events.length, epoch }
  }
  const writer = new ImportWriter({ append } as unknown as Ledger)
  const received = (): readonly string[] => noted.splice(0)
  return { writer, received }
}

function eventsOf(runId: RunId, from: number, count: number, epoch = 1): readonly RuntimeEvent[] {
  const facts = Array.from({ length: count }, () => fact)
  return stampFacts(runId, facts, { afterSeq: from - 1, epoch })
}

/** Adds events, each with a line of so many characters. */
async function add(writer: ImportWriter, events: readonly RuntimeEvent[], length = 1): Promise<void> {
  for (const event of events) await writer.add(event, length)
}

describe('imported events', () => {
  it('are appended in groups of 256, or of a mebibyte of lines, and the last is made durable', async () => {
    const { writer, received } = noting()
    await add(writer, eventsOf(one, 1, 255))
    expect(received()).toEqual([])
    await add(writer, eventsOf(one, 256, 2))
    expect(received()).toEqual(['one 0+256 1 lazy'])
    await add(writer, eventsOf(one, 258, 1), 1024 * 1024 - 2)
    expect(received()).toEqual([])
    await add(writer, eventsOf(one, 259, 2))
    expect(received()).toEqual(['one 256+3 1 lazy'])
    await writer.finish()
    expect(received()).toEqual(['one 259+1 1 barrier'])
  })

  it('are one group for each run and epoch', async () => {
    const { writer, received } = noting()
    await add(writer, [...eventsOf(one, 1, 2), ...eventsOf(one, 3, 1, 2), ...eventsOf(two, 1, 1, 2)])
    expect(received()).toEqual(['one 0+2 1 lazy', 'one 2+1 2 lazy'])
    await writer.flush()
    expect(received()).toEqual(['two 0+1 2 lazy'])
    await writer.flush()
    expect(received()).toEqual([])
    await writer.finish()
    expect(received()).toEqual(['two 1+0 2 barrier'])
  })

  it('are durable after 4096 of them, and after 16 MiB of lines, each counted anew', async () => {
    const { writer, received } = noting()
    const groups = (count: number): readonly string[] => Array.from({ length: count }, () => 'lazy')
    const levels = (): readonly string[] => received().map((line) => line.split(' ')[3] ?? '')
    await add(writer, eventsOf(one, 1, 4096))
    expect(levels()).toEqual([...groups(15), 'barrier'])
    await add(writer, eventsOf(one, 4097, 16), 1024 * 1024)
    expect(levels()).toEqual([...groups(15), 'barrier'])
    await add(writer, eventsOf(one, 4113, 4096))
    expect(levels()).toEqual([...groups(15), 'barrier'])
    await writer.finish()
    expect(received()).toEqual([])
  })

  it('append nothing if there are no events', async () => {
    const { writer, received } = noting()
    await writer.flush()
    await writer.finish()
    expect(received()).toEqual([])
  })

  it('that a ledger refuses are offered once', async () => {
    const { writer, received } = noting({ refuses: true })
    await add(writer, eventsOf(one, 1, 3))
    await expect(writer.flush()).rejects.toThrow('refused')
    await writer.finish()
    expect(received()).toEqual(['one 0+3 1 lazy'])
  })
})
