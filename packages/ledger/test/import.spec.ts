import { createReadStream, writeFileSync } from 'node:fs'
import {
  LedgerConflictError,
  LedgerDamagedError,
  memoryLedger,
  UnknownEventError,
  type Ledger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { type Head } from '@tallystick/core/vocabulary'
import { copyPrefix, sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import {
  foldTo,
  importEvents,
  redact,
  splitLines,
  verifyLedger,
  verifyRun,
  type ImportedRun,
} from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { linesOfLedger } from './support/exported.ts'
import { recordRun } from './support/record-run.ts'
import { emptyLedgerFile, temporaryFile } from './support/temporary-folder.ts'

/** A ledger file that is closed when the test ends. */
function openFile(path: string = emptyLedgerFile()): Ledger {
  const ledger = sqliteLedger(path)
  onTestFinished(() => ledger.close())
  return ledger
}

/** A ledger with two runs, and its lines. */
async function exported(): Promise<{ ledger: Ledger; lines: string[]; runIds: RunId[] }> {
  const ledger = memoryLedger()
  const runIds = [await recordRun(ledger, 1), await recordRun(ledger, 2)]
  return { ledger, runIds, lines: await linesOfLedger(ledger) }
}

/** Rejects as an import does, and answers what the ledger holds of each run then. */
async function refused(ledger: Ledger, lines: readonly string[]): Promise<{ error: Error; heads: Head[] }> {
  const error = await importEvents(ledger, lines).then(
    () => new Error('It was imported.'),
    (reason: Error) => reason,
  )
  return { error, heads: await Array.fromAsync(ledger.runs(), ({ head }) => head) }
}

const eventOf = (line: string | undefined): RuntimeEvent => JSON.parse(line ?? '') as RuntimeEvent

describe('importEvents', () => {
  it('leaves on record which runs it brought, and by whom; not of runs that were there', async () => {
    const { lines, runIds } = await exported()
    const own = openFile()
    const [first = '', second] = runIds
    const ofFirst = lines.filter((line) => line.includes(first))
    const begun = ofFirst.slice(0, 5)
    await importEvents(own, begun, { by: 'ann' })
    const note = async (runId = ''): Promise<unknown> => (await verifyRun(own, runId as RunId)).imported
    expect(await note(first)).toEqual({ at: expect.any(Number), by: 'ann' })
    const before = await note(first)
    await importEvents(own, lines)
    expect(await note(first)).toEqual(before)
    expect(await note(second)).toMatchObject({ by: 'import' })
    const home = openFile()
    const recorded = await recordRun(home, 3)
    await importEvents(home, await linesOfLedger(home), { by: 'bob' })
    expect((await verifyRun(home, recorded)).imported).toBeUndefined()
    for (const ledger of [own, home]) {
      expect(await Array.fromAsync(verifyLedger(ledger), ({ ok }) => ok)).not.toContain(false)
    }
    await redact(own, first as RunId, 'all', { by: 'eve', reason: 'a request' })
    expect(await Array.fromAsync(verifyLedger(own), ({ ok }) => ok)).not.toContain(false)
    expect(await note(first)).toEqual(before)
  })

  it('says of a run that it carries on from which event it comes from elsewhere', async () => {
    const { lines, runIds } = await exported()
    const [first = ''] = runIds
    const ofFirst = lines.filter((line) => line.includes(first))
    const ledger = openFile()
    const events = ofFirst.slice(0, 3).map((line) => JSON.parse(line) as RuntimeEvent)
    await ledger.append(first as RunId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'barrier' })
    await importEvents(ledger, ofFirst)
    expect((await verifyRun(ledger, first as RunId)).imported).toMatchObject({ reason: 'from event 4 on' })
  })

  it('moves every run into another ledger and back: the same lines, in the same order, and a chain that verifies', async () => {
    const { lines, runIds, ledger } = await exported()
    const [file, back] = [openFile(), memoryLedger()]
    const runs: ImportedRun[] = []
    const report = await importEvents(file, lines, { onRun: (run) => void runs.push(run) })
    expect(report).toEqual({ runs: 2, events: lines.length, present: 0 })
    expect(runs).toEqual(
      await Promise.all(
        runIds.map(async (runId) => ({ runId, events: (await ledger.head(runId))?.seq, present: 0 })),
      ),
    )
    expect(await linesOfLedger(file)).toEqual(lines)
    expect(await Array.fromAsync(file.runs())).toEqual(await Array.fromAsync(ledger.runs()))
    expect(await Array.fromAsync(verifyLedger(file), ({ ok }) => ok)).toEqual([true, true, true])
    for (const runId of runIds) expect(await foldTo(file, runId)).toEqual(await foldTo(ledger, runId))
    await importEvents(back, await linesOfLedger(file))
    expect(await linesOfLedger(back)).toEqual(lines)
  })

  it('reads a file of bytes, whatever characters and pieces it is cut into', async () => {
    const runId = sampleRunId(1)
    const { run_started: start, input_received: input } = sampleFacts(runId)
    const text = 'Odd: \u2028 \u2029 \r \v \ud800 😀 \n "x" \0'
    const message = { role: 'user' as const, parts: [{ type: 'text' as const, text }] }
    const events = stampFacts(runId, [start, { ...input, message }])
    const ledger = memoryLedger()
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    const lines = await linesOfLedger(ledger)
    const path = temporaryFile('export.jsonl')
    writeFileSync(path, `${lines.join('\n')}\n`)
    for (const highWaterMark of [1, 7, 65536]) {
      const copy = memoryLedger()
      await importEvents(copy, splitLines(createReadStream(path, { highWaterMark })))
      expect(await linesOfLedger(copy)).toEqual(lines)
    }
  })

  it('writes a run of many events in groups, and the whole of it durably', async () => {
    const runId = sampleRunId(1)
    const { run_started: start, input_received: input } = sampleFacts(runId)
    const many = Array.from({ length: 9_000 }, (_, index) => ({
      ...{ type: 'limit_raised' as const, turn: 0, limit: 'maxTurns' as const, max: index, by: 'ada' },
    }))
    const events = stampFacts(runId, [start, input, ...many])
    const source = memoryLedger()
    await source.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    const lines = await linesOfLedger(source)
    const [path, appends] = [emptyLedgerFile(), [] as [number, string][]]
    const file = sqliteLedger(path)
    const counting: Ledger = {
      ...file,
      append(id, expected, group, options) {
        appends.push([group.length, options.durability])
        return file.append(id, expected, group, options)
      },
    }
    await importEvents(counting, lines)
    await file.close()
    expect(appends.map(([length]) => length)).toEqual([
      ...Array.from({ length: 35 }, () => 256),
      events.length - 35 * 256,
    ])
    // One barrier for each 4096 events, and one at the end.
    expect(appends.filter(([, durability]) => durability === 'barrier').length).toBe(3)
    expect(appends.at(-1)?.[1]).toBe('barrier')
    expect(await linesOfLedger(openFile(path))).toEqual(lines)
  })

  it('keeps the epochs of the writers, and continues with the next one', async () => {
    const { ledger, runIds } = await exported()
    const runId = runIds[0] as RunId
    const before = (await Array.fromAsync(ledger.read(runId))).slice(0, 3)
    const source = memoryLedger()
    await copyPrefix(before, source)
    for (let takeOvers = 0; takeOvers < 4; takeOvers++) await source.acquire(runId)
    const resumed = stampFacts(runId, [{ type: 'run_resumed', turn: 1, why: 'crash', inDoubt: [] }], {
      afterSeq: 3,
      epoch: 5,
    }).map((event) => ({ ...event, at: (before[2]?.at ?? 0) + 1 }))
    await source.append(runId, { expectedSeq: 3, epoch: 5 }, resumed, { durability: 'barrier' })
    const file = openFile()
    await importEvents(file, await linesOfLedger(source))
    expect(await linesOfLedger(file)).toEqual(await linesOfLedger(source))
    expect(await file.head(runId)).toEqual({ seq: 4, epoch: 5 })
    expect(await file.acquire(runId)).toEqual({ seq: 4, epoch: 6 })
    expect(await Array.fromAsync(verifyLedger(file), ({ ok }) => ok)).toEqual([true, true])
  })

  it('changes nothing where the same events are there already, and carries on a run that ends early', async () => {
    const { lines } = await exported()
    const file = openFile()
    const cut = lines.length - 3
    expect(await importEvents(file, lines.slice(0, cut))).toEqual({ runs: 2, events: cut, present: 0 })
    expect(await importEvents(file, lines)).toEqual({ runs: 2, events: 3, present: cut })
    const heads = await Array.fromAsync(file.runs())
    expect(await importEvents(file, lines)).toEqual({ runs: 2, events: 0, present: lines.length })
    expect(await importEvents(file, lines.slice(0, 2))).toEqual({ runs: 1, events: 0, present: 2 })
    expect(await Array.fromAsync(file.runs())).toEqual(heads)
    expect(await linesOfLedger(file)).toEqual(lines)
  })

  it('lets go of what it read of a run that has more events in the ledger than in the lines', async () => {
    const { lines, ledger, runIds } = await exported()
    let reading = 0
    const watched: Ledger = Object.assign(Object.create(ledger) as Ledger, {
      async *read(runId: RunId) {
        reading += 1
        try {
          yield* ledger.read(runId)
        } finally {
          reading -= 1
        }
      },
    })
    const head = (await ledger.head(runIds[0] as RunId))?.seq ?? 0
    expect(await importEvents(watched, [...lines.slice(0, 2), ...lines.slice(head)])).toMatchObject({
      runs: 2,
    })
    expect(reading).toBe(0)
  })

  it('refuses events in the place of some that the ledger counts and does not give out', async () => {
    const { lines, ledger } = await exported()
    const empty: Ledger = Object.assign(Object.create(ledger) as Ledger, { async *read() {} })
    await expect(importEvents(empty, lines)).rejects.toThrow(LedgerConflictError)
  })

  it('continues a run whose beginning is in the same file', async () => {
    const { lines, ledger, runIds } = await exported()
    const head = (await ledger.head(runIds[0] as RunId))?.seq ?? 0
    const file = openFile()
    const report = await importEvents(file, [...lines.slice(0, 5), ...lines.slice(head), ...lines])
    expect(report).toEqual({ runs: 4, events: lines.length, present: 5 + lines.length - head })
    expect(await Array.fromAsync(verifyLedger(file), ({ ok }) => ok)).toEqual([true, true, true])
  })

  it('refuses a run that is another one in the ledger, and leaves that as it is', async () => {
    const { lines } = await exported()
    const at = lines.findIndex((line) => line.includes('"type":"assistant_started"'))
    const changed = lines.with(at, (lines[at] as string).replace('"scripted-1"', '"scripted-9"'))
    const file = openFile()
    await importEvents(file, lines)
    const { error } = await refused(file, changed)
    expect(error).toBeInstanceOf(LedgerConflictError)
    expect(error.message).toContain(`Event ${at + 1} of run`)
    expect(await linesOfLedger(file)).toEqual(lines)
  })

  it('refuses to continue with a run that another writer has taken over', async () => {
    const { lines, runIds } = await exported()
    const file = openFile()
    await importEvents(file, lines.slice(0, 4))
    await file.acquire(runIds[0] as RunId)
    const { error, heads } = await refused(file, lines)
    expect(error).toMatchObject({ name: 'LedgerConflictError', kind: 'epoch' })
    expect(heads).toEqual([{ seq: 4, epoch: 2 }])
  })

  it('refuses a second run at one place of a session', async () => {
    const [one, two] = [sampleRunId(1), sampleRunId(2)]
    const linesFor = async (runId: RunId): Promise<string[]> => {
      const ledger = memoryLedger()
      const start = { ...sampleFacts(runId).run_started, sessionId: 'chat', sessionPlace: 1 }
      await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, stampFacts(runId, [start]), {
        durability: 'lazy',
      })
      return linesOfLedger(ledger)
    }
    const { error, heads } = await refused(openFile(), [...(await linesFor(one)), ...(await linesFor(two))])
    expect(error).toMatchObject({ name: 'LedgerConflictError', kind: 'unique' })
    expect(heads).toEqual([{ seq: 1, epoch: 1 }])
  })

  it('tolerates a last line that is cut off, at every byte, and says so', async () => {
    const { lines } = await exported()
    const whole = lines.slice(0, 3)
    const last = Buffer.from(`${(lines[3] as string).slice(0, -2)}ü"}`)
    for (let length = 1; length < last.length; length += 5) {
      const torn: (string | Uint8Array)[] = [...whole, last.subarray(0, length)]
      expect(await importEvents(memoryLedger(), torn)).toEqual({
        ...{ runs: 1, events: 3, present: 0 },
        torn: { line: 4 },
      })
    }
    expect(await importEvents(memoryLedger(), [...whole, '', '\0\0\0\0'])).toMatchObject({
      events: 3,
      torn: { line: 5 },
    })
    expect(await importEvents(memoryLedger(), [])).toEqual({ runs: 0, events: 0, present: 0 })
  })
})

describe('a line that cannot be imported', () => {
  const refusal = async (change: (lines: string[]) => string[]): Promise<{ error: Error; heads: Head[] }> => {
    const { lines } = await exported()
    return await refused(openFile(), change(lines))
  }

  it('is named by its number, and the lines before it are kept', async () => {
    const { error, heads } = await refusal((lines) => lines.with(5, '{"torn":'))
    expect(error).toBeInstanceOf(LedgerDamagedError)
    expect(error.message).toMatch(
      /^Line 6 cannot be imported: it is not JSON, and not the beginning of an event\./,
    )
    expect(heads).toEqual([{ seq: 5, epoch: 1 }])
  })

  it('is one with a number that would become another one', async () => {
    const { error } = await refusal((lines) =>
      lines.map((line) => line.replace('"Seoul"', '{"id":2512292042121000001}')),
    )
    expect(error).toBeInstanceOf(LedgerDamagedError)
    expect(error.message).toMatch(/^Line \d+ cannot be imported: .*2512292042121000001/)
  })

  it('is one that holds invalid UTF-8, which is never read as something else', async () => {
    const { lines } = await exported()
    const bytes = lines.map((line) => Buffer.from(line))
    const place = (bytes[1] as Buffer).indexOf('Seoul')
    ;(bytes[1] as Buffer)[place] = 0xff
    await expect(importEvents(memoryLedger(), bytes)).rejects.toThrow('Line 2 cannot be imported')
  })

  it('is an event that this release does not know, by type or by version', async () => {
    for (const what of ['"type":"from_the_future","v":1', '"type":"input_received","v":7']) {
      const { error, heads } = await refusal((lines) =>
        lines.with(1, (lines[1] as string).replace('"type":"input_received","v":1', what)),
      )
      expect(error).toBeInstanceOf(UnknownEventError)
      expect(heads).toEqual([{ seq: 1, epoch: 1 }])
    }
  })

  it('is one without which a run has a gap, or that begins in the middle', async () => {
    const gap = await refusal((lines) => lines.toSpliced(4, 1))
    expect(gap.error.message).toContain('it holds event 6')
    expect(gap.error.message).toContain('where event 5 is due')
    expect(gap.heads).toEqual([{ seq: 4, epoch: 1 }])
    const middle = await refusal((lines) => lines.slice(2))
    expect(middle.error.message).toContain('Line 1 cannot be imported: it holds event 3')
    expect(middle.heads).toEqual([])
  })

  it('is one with which a run breaks a law', async () => {
    const forged = await refusal((lines) => {
      const at = lines.findIndex((line) => line.includes('"model_call_started"'))
      return lines.with(
        at,
        (lines[at] as string).replace(/"requestDigest":"[^"]+"/, `"requestDigest":"${'0'.repeat(64)}"`),
      )
    })
    expect(forged.error).toBeInstanceOf(LedgerDamagedError)
    expect(forged.error.message).toMatch(/event \d+ \(model_call_started\) of run \S+ breaks law 7/)
    const twice = await refusal((lines) => {
      const at = lines.findIndex((line) => line.includes('"tool_result"'))
      const { seq } = eventOf(lines[at])
      const again = (lines[at] as string).replace(`"seq":${seq}`, `"seq":${seq + 1}`)
      return lines.toSpliced(at + 1, 0, again)
    })
    expect(twice.error.message).toMatch(/breaks tool_result call_/)
  })

  it('is one with epochs that no run has', async () => {
    const first = await refusal((lines) =>
      lines.with(0, (lines[0] as string).replace('"epoch":1', '"epoch":2')),
    )
    expect(first.error.message).toContain('begins with the epoch 2')
    expect(first.heads).toEqual([])
    const jump = await refusal((lines) =>
      lines.with(1, (lines[1] as string).replace('"epoch":1', '"epoch":9007199254740991')),
    )
    expect(jump.error.message).toContain('the epoch rises from 1 to 9007199254740991 at event 2')
    expect(jump.heads).toEqual([{ seq: 1, epoch: 1 }])
  })

  it.each(['7', 'null', '[]', '{}', '"text"', '{"type":"__proto__","v":1}'])('is %s', async (text) => {
    const { error } = await refusal((lines) => lines.with(2, text))
    expect(error).toBeInstanceOf(LedgerDamagedError)
    expect(error.message).toContain('Line 3 cannot be imported')
  })
})
