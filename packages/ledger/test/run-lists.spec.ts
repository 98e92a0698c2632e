// Lists of more runs than are asked for at once, with runs of which projections do not tell yet.
import { type Ledger } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { readLedgerStats, readRunSummaries, readRunSummary, type SummaryFilter } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { refreshed } from './support/compare-projections.ts'
import { tamper } from './support/raw-database.ts'

const many = 150
/** Runs up to this one have ended, each fifth of them without success; the later ones are unfinished. */
const lastEnded = 20

let path: string
let ledger: Ledger
let reader: Ledger
/** Which runs are read, from which event on, and how often all of them are listed. */
let read: (readonly [run: number, fromSeq: number | undefined])[]
let lists: number

const ordinalOf = (runId: string): number => Number.parseInt(runId.slice(-12), 16)
const countdown = (from: number, to: number): readonly number[] =>
  Array.from({ length: from - to + 1 }, (_, index) => from - index)

async function append(
  ordinal: number,
  afterSeq: number,
  facts: Parameters<typeof stampFacts>[1],
): Promise<void> {
  const runId = sampleRunId(ordinal)
  const events = stampFacts(runId, facts, { afterSeq }).map((event) => ({ ...event, at: event.at + ordinal }))
  await ledger.append(runId, { expectedSeq: afterSeq, epoch: 1 }, events, { durability: 'lazy' })
}

async function begin(ordinal: number): Promise<void> {
  const { run_started, input_received: input, run_finished: end } = sampleFacts(sampleRunId(ordinal))
  const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = run_started
  const reason = ordinal % 5 === 0 ? 'model_failed' : 'answered'
  const ended = { ...end, reason, turn: 0, turns: 0, toolCalls: 0, usage: {} } as const
  await append(ordinal, 0, ordinal > lastEnded ? [start, input] : [start, input, ended])
}

/** What a list yields, by the ordinal of each run and its last event. */
async function listed(of: Ledger, filter: SummaryFilter): Promise<readonly (readonly [number, number])[]> {
  return (await Array.fromAsync(readRunSummaries(of, filter))).map(({ runId, seq }) => [
    ordinalOf(runId),
    seq,
  ])
}
const ordinals = async (of: Ledger, filter: SummaryFilter): Promise<readonly number[]> =>
  (await listed(of, filter)).map(([ordinal]) => ordinal)

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-lists-'))
  path = join(folder, 'runs.db')
  ledger = sqliteLedger(path, {})
  for (let ordinal = 1; ordinal <= many; ordinal++) await begin(ordinal)
  await refreshed(ledger)
  // These have grown since, or are new.
  for (const ordinal of [30, 90, many])
    await append(ordinal, 2, [sampleFacts(sampleRunId(ordinal)).input_received])
  for (const ordinal of [many + 1, many + 2]) await begin(ordinal)
  reader = sqliteLedger(path, { readOnly: true })
  const [reading, running] = [reader.read.bind(reader), reader.runs.bind(reader)]
  Object.assign(reader, {
    read: (...given: Parameters<typeof reading>) => {
      read.push([ordinalOf(given[0]), given[1]?.fromSeq])
      return reading(...given)
    },
    runs: (...given: Parameters<typeof running>) => (lists++, running(...given)),
  })
  return async () => {
    await Promise.all([ledger.close(), reader.close()])
    rmSync(folder, { recursive: true })
  }
})
beforeEach(() => {
  read = []
  lists = 0
})

const whole = countdown(many + 2, 1).map((ordinal) => {
  const isGrown = [30, 90, many].includes(ordinal) || ordinal <= lastEnded
  return [ordinal, isGrown ? 3 : 2]
})
const lagging = [30, 90, 150, 151, 152]

describe('a list of many runs', () => {
  it('is complete and in order, and reads what projections do not tell yet', async () => {
    expect(await listed(reader, { since: 0 })).toEqual(whole)
    expect(read.map(([ordinal]) => ordinal).toSorted((a, b) => a - b)).toEqual(lagging)
    expect(lists).toBe(0)
  })

  it('without a filter reads the newest runs as far as they are asked for, 64 at a time', async () => {
    expect(await listed(reader, { limit: 70 })).toEqual(whole.slice(0, 70))
    expect(read.map(([ordinal]) => ordinal).toSorted((a, b) => a - b)).toEqual(lagging.slice(1))
    expect(lists).toBe(1)
    expect(await listed(reader, {})).toEqual(whole)
    expect(await listed(reader, { limit: 2, before: sampleRunId(64) })).toEqual([
      [63, 2],
      [62, 2],
    ])
  })

  it('of some statuses is complete and in order, whichever has more', async () => {
    expect(await ordinals(reader, { statuses: ['done', 'unfinished'] })).toEqual(
      countdown(many + 2, 1).filter((ordinal) => ordinal > lastEnded || ordinal % 5 > 0),
    )
    expect(await ordinals(reader, { statuses: ['failed', 'failed'] })).toEqual([20, 15, 10, 5])
    expect(await ordinals(reader, { statuses: ['failed'], agent: 'assistant', since: 0, limit: 3 })).toEqual([
      20, 15, 10,
    ])
    expect(await ordinals(reader, { agent: 'nobody' })).toEqual([])
    expect(await ordinals(reader, { agent: 'assistant' })).toEqual(countdown(many + 2, 1))
  })

  it('continues after any run', async () => {
    expect(await ordinals(reader, { since: 0, before: sampleRunId(151) })).toEqual(countdown(150, 1))
    expect(await ordinals(reader, { since: 0, before: sampleRunId(90) })).toEqual(countdown(89, 1))
    expect(await ordinals(reader, { since: 0, before: sampleRunId(91), limit: 1 })).toEqual([90])
    expect(await ordinals(reader, { statuses: ['unfinished'], before: sampleRunId(21) })).toEqual([])
  })

  it('begins with the runs since a moment', async () => {
    const { at } = (await Array.fromAsync(ledger.read(sampleRunId(100)))).at(-1)!
    expect(await ordinals(reader, { since: at })).toEqual(countdown(many + 2, 100))
  })

  it('continues run by run where its rows cannot be read any more', async () => {
    const seen: number[] = []
    for await (const { runId } of readRunSummaries(reader, { since: 0 })) {
      seen.push(ordinalOf(runId))
      if (seen.length === 70) {
        tamper(path, (file) => file.exec('alter table run_summary rename column status to stand'))
      }
    }
    tamper(path, (file) => file.exec('alter table run_summary rename column stand to status'))
    expect(seen).toEqual(countdown(many + 2, 1))
    expect(lists).toBe(1)
  })

  it('tells of a row that was cut off what its events say', async () => {
    const cut = (ordinal: number, to: string): void =>
      tamper(path, (file) =>
        file.prepare('update run_summary set summary = ? where run_id = ?').run(to, sampleRunId(ordinal)),
      )
    const sound = JSON.stringify(await readRunSummary(ledger, sampleRunId(100)))
    cut(100, '{')
    expect(await listed(reader, { since: 0 })).toEqual(whole)
    expect(await readRunSummary(reader, sampleRunId(100))).toMatchObject({ seq: 2, status: 'unfinished' })
    cut(100, sound)
  })
})

describe('one run', () => {
  it('comes from its row where that is up to date, and is read where it is not', async () => {
    expect(await readRunSummary(reader, sampleRunId(100))).toMatchObject({ seq: 2, status: 'unfinished' })
    expect(read).toEqual([])
    expect(await readRunSummary(reader, sampleRunId(90))).toMatchObject({ seq: 3, status: 'unfinished' })
    expect(read).toEqual([[90, 1]])
  })
})

describe('stats of many runs', () => {
  it('name the newest, whichever lag', async () => {
    const asked = { since: 0, maxListed: 4 }
    for (const each of [reader, ledger]) {
      const { counts, unfinished, failed, suspended, unreadable } = await readLedgerStats(each, asked)
      expect(counts).toEqual({ done: 16, failed: 4, suspended: 0, unfinished: 132, unreadable: 0 })
      expect(unfinished.map(({ runId }) => ordinalOf(runId))).toEqual([152, 151, 150, 149])
      expect(failed.map(({ runId }) => ordinalOf(runId))).toEqual([20, 15, 10, 5])
      expect([suspended, unreadable]).toEqual([[], []])
    }
  })
})
