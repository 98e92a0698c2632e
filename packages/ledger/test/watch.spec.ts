import { memoryLedger, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { watch } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { firstValueFrom, lastValueFrom, take, tap, toArray } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { emptyLedgerFile } from './support/temporary-folder.ts'

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
