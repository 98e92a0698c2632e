import { copyFileSync } from 'node:fs'
import {
  memoryLedger,
  type Ledger,
  type RunId,
  type RuntimeEvent,
  ConfigurationError,
} from '@tallystick/core'
import type { TailedEvent } from '@tallystick/core/vocabulary'
import { watch, watchLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { firstValueFrom, lastValueFrom, take, tap, toArray } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { goesOnBehindDropped } from './support/dropped-cursor.ts'
import { emptyLedgerFile, temporaryFile } from './support/temporary-folder.ts'

const run = sampleRunId(1)
const facts = sampleFacts(run)
const saying = (text: string) => ({ ...facts.assistant_text_delta, text })
const events = stampFacts(run, [
  facts.run_started,
  ...['a', 'b', 'c', 'd', 'e'].map(saying),
  facts.run_finished,
])

async function append(ledger: Ledger, from: number, to: number): Promise<void> {
  const page = events.slice(from, to)
  await ledger.append(run, { expectedSeq: from, epoch: 1 }, page, { durability: 'barrier' })
}

const seqsOf = (seen: readonly RuntimeEvent[]): readonly number[] => seen.map(({ seq }) => seq)

/** A writer, and a reader that has nothing of it but the store. */
const pairs: readonly [string, () => readonly [Ledger, Ledger]][] = [
  [
    'in memory',
    () => {
      const ledger = memoryLedger()
      return [ledger, ledger]
    },
  ],
  [
    'of another connection to a file',
    () => {
      const path = emptyLedgerFile()
      const pair = [sqliteLedger(path), sqliteLedger(path)] as const
      onTestFinished(async () => {
        for (const ledger of pair) await ledger.close()
      })
      return pair
    },
  ],
]

describe.each(pairs)('watching a ledger %s', (_where, open) => {
  it('gives what is there and what comes, without a gap or a repeat, and ends with the run', async () => {
    const [writer, reader] = open()
    await append(writer, 0, 2)
    const seen = firstValueFrom(watch(reader, run).pipe(toArray()))
    await firstValueFrom(watch(reader, run).pipe(take(2), toArray()))
    for (let seq = 2; seq < events.length; seq++) await append(writer, seq, seq + 1)
    expect(await seen).toEqual(events)
  })

  it('continues from a cursor, also after the end', async () => {
    const [writer, reader] = open()
    await append(writer, 0, events.length)
    for (const fromSeq of [1, 3, events.length]) {
      const seen = await firstValueFrom(watch(reader, run, fromSeq).pipe(toArray()))
      expect(seqsOf(seen)).toEqual(seqsOf(events.slice(fromSeq - 1)))
    }
    expect(await firstValueFrom(watch(reader, run, 99).pipe(toArray()))).toEqual([])
  })

  it('is cut off with an error when its ledger is closed, after what it has read', async () => {
    const [writer, reader] = open()
    await append(writer, 0, 2)
    const seen: RuntimeEvent[] = []
    const all = lastValueFrom(watch(reader, run).pipe(tap((event) => seen.push(event))))
    await firstValueFrom(watch(reader, run).pipe(take(2), toArray()))
    await reader.close()
    await expect(all).rejects.toMatchObject({ code: 'ledger_unavailable' })
    expect(seqsOf(seen)).toEqual([1, 2])
  })

  it('says that a run is not there', async () => {
    const [, reader] = open()
    const missing: RunId = sampleRunId(9)
    await expect(firstValueFrom(watch(reader, missing))).rejects.toThrow(/is not in this ledger/)
  })

  it('stops listening after its last subscriber leaves', async () => {
    const [writer, reader] = open()
    await append(writer, 0, 2)
    const seen: number[] = []
    await new Promise<void>((resolve) => {
      const subscription = watch(reader, run).subscribe(({ seq }) => {
        seen.push(seq)
        if (seq < 2) return
        queueMicrotask(() => {
          subscription.unsubscribe()
          resolve()
        })
      })
    })
    await append(writer, 2, 4)
    expect(seen).toEqual([1, 2])
  })
})

describe('watching a whole ledger', () => {
  const [run, otherRun] = [sampleRunId(1), sampleRunId(2)]

  async function append(ledger: Ledger, runId: RunId, seq: number, text = `${seq}`): Promise<void> {
    const facts = sampleFacts(runId)
    const fact = seq === 1 ? facts.run_started : { ...facts.assistant_text_delta, text }
    const events = stampFacts(runId, [fact], { afterSeq: seq - 1 })
    await ledger.append(runId, { expectedSeq: seq - 1, epoch: 1 }, events, { durability: 'lazy' })
  }

  function sqlite(path: string): Ledger {
    const ledger = sqliteLedger(path, { pollIntervalMs: 5 })
    onTestFinished(() => ledger.close())
    return ledger
  }

  /** A writer, and a reader that has nothing of it but the store. */
  const pairs: readonly [string, () => readonly [Ledger, Ledger]][] = [
    [
      'in memory',
      () => {
        const ledger = memoryLedger()
        return [ledger, ledger]
      },
    ],
    [
      'of another connection to a file',
      () => {
        const path = emptyLedgerFile()
        return [sqlite(path), sqlite(path)]
      },
    ],
  ]

  const places = (seen: readonly TailedEvent[]): readonly string[] =>
    seen.map(({ event }) => `${event.runId === run ? 'one' : 'other'} ${event.seq}`)

  describe.each(pairs)('watching every run of a ledger %s', (_where, open) => {
    it('gives what is there and what comes of each run, without a gap or a repeat', async () => {
      const [writer, reader] = open()
      await append(writer, run, 1)
      const seen = firstValueFrom(watchLedger(reader).pipe(take(7), toArray()))
      await firstValueFrom(watchLedger(reader))
      for (const seq of [1, 2, 3]) {
        await append(writer, otherRun, seq)
        await append(writer, run, seq + 1)
      }
      const order = ['one 1', 'other 1', 'one 2', 'other 2', 'one 3', 'other 3', 'one 4']
      expect(places(await seen)).toEqual(order)
    })

    it('continues after a cursor that was kept', async () => {
      const [writer, reader] = open()
      for (const seq of [1, 2, 3]) await append(writer, run, seq)
      const seen = await firstValueFrom(watchLedger(reader).pipe(take(2), toArray()))
      const rest = firstValueFrom(watchLedger(reader, seen.at(-1)?.cursor).pipe(take(2), toArray()))
      await append(writer, otherRun, 1)
      expect(places(await rest)).toEqual(['one 3', 'other 1'])
    })

    it('ends with an error for a cursor that names no event', async () => {
      const [writer, reader] = open()
      await append(writer, run, 1)
      const lost = firstValueFrom(watchLedger(reader, 'nowhere'))
      await expect(lost).rejects.toThrow(ConfigurationError)
      await expect(lost).rejects.toThrow(/The cursor "nowhere" does not belong to an event of this ledger/)
    })

    it('is cut off with an error when its ledger is closed, and so is one that comes later', async () => {
      const [writer, reader] = open()
      await append(writer, run, 1)
      const seen: TailedEvent[] = []
      const all = lastValueFrom(watchLedger(reader).pipe(tap((tailed) => seen.push(tailed))))
      await firstValueFrom(watchLedger(reader))
      await reader.close()
      await expect(all).rejects.toMatchObject({ code: 'ledger_unavailable' })
      expect(places(seen)).toEqual(['one 1'])
      await expect(lastValueFrom(watchLedger(reader))).rejects.toMatchObject({ code: 'ledger_unavailable' })
    })

    it('stops listening after its last subscriber leaves', async () => {
      const [writer, reader] = open()
      await append(writer, run, 1)
      const seen: TailedEvent[] = []
      await new Promise<void>((resolve) => {
        const subscription = watchLedger(reader).subscribe((tailed) => {
          seen.push(tailed)
          queueMicrotask(() => {
            subscription.unsubscribe()
            resolve()
          })
        })
      })
      await append(writer, run, 2)
      await firstValueFrom(watchLedger(reader).pipe(take(2), toArray()))
      expect(places(seen)).toEqual(['one 1'])
    })
  })

  describe('a cursor of a file', () => {
    it('is good when its run was dropped, on record', async () => {
      await expect(goesOnBehindDropped(sqlite(emptyLedgerFile()))).resolves.toBeUndefined()
    })

    it('is refused where an older copy was restored and other events are at its place, instead of leaving them out', async () => {
      const [path, copy] = [temporaryFile(), temporaryFile()]
      const before = sqliteLedger(path)
      await append(before, run, 1)
      await before.close()
      copyFileSync(path, copy)
      const lost = sqlite(path)
      await append(lost, run, 2)
      await append(lost, run, 3)
      const [first, second, third] = await Array.fromAsync(lost.tail())
      const restored = sqlite(copy)
      for (const seq of [2, 3, 4]) await append(restored, run, seq, 'another')
      expect(places(await Array.fromAsync(restored.tail(first?.cursor)))).toEqual(['one 2', 'one 3', 'one 4'])
      for (const { cursor } of [second, third] as readonly TailedEvent[]) {
        await expect(Array.fromAsync(restored.tail(cursor))).rejects.toThrow(/an older copy was restored/)
      }
    })
  })
})
