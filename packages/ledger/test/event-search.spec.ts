import { sampleCallId, sampleRunId } from '@tallystick/core/testing'
import type { EventType } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import {
  askedEvents,
  batchOf,
  everyEvent,
  isTimed,
  sourcesOf,
  type AskedEvents,
  type FoundRow,
  type SearchedStore,
  type SearchSource,
} from '../src/read/event-search.ts'
import { findEvents } from '../src/read/find-events.ts'

const runId = sampleRunId(1)
const toolCallId = sampleCallId(runId)

describe('what is asked for', () => {
  it('is every event where a query says nothing', () => {
    expect(askedEvents({})).toStrictEqual(everyEvent)
    expect(
      askedEvents({ sessionId: 'ann', runId, turn: 0, toolCallId, types: ['run_started'] }),
    ).toStrictEqual({
      ...{ sessionId: 'ann', runId, turn: 0, toolCallId, types: ['run_started'] },
      ...{ fromAt: Number.MIN_SAFE_INTEGER, toAt: Number.MAX_SAFE_INTEGER },
    })
  })

  it('is each type once, and whole milliseconds within what can be compared', () => {
    expect(askedEvents({ types: ['run_started', 'run_started'] })?.types).toEqual(['run_started'])
    expect(askedEvents({ fromAt: 1.2, toAt: 2.8 })).toMatchObject({ fromAt: 2, toAt: 2 })
    expect(askedEvents({ fromAt: -Infinity, toAt: Infinity })).toMatchObject({
      ...{ fromAt: Number.MIN_SAFE_INTEGER, toAt: Number.MAX_SAFE_INTEGER },
    })
  })

  it.each([
    { types: [] },
    { turn: 0.5 },
    { turn: Number.NaN },
    { fromAt: 2, toAt: 1 },
    { fromAt: 1.2, toAt: 1.8 },
  ])('by %j has no answer, whatever the store holds', (query) => {
    expect(askedEvents(query)).toBeUndefined()
  })

  it('is bounded in time by either end', () => {
    expect(isTimed(everyEvent)).toBe(false)
    expect(isTimed({ ...everyEvent, fromAt: 0 })).toBe(true)
    expect(isTimed({ ...everyEvent, toAt: 0 })).toBe(true)
  })
})

describe('where a search looks', () => {
  const run = (ordinal: number, pos: number) => ({ runId: sampleRunId(ordinal), pos, headSeq: 9 })
  const [early, late] = [run(2, 10), run(1, 20)]
  const looking = async (query: Partial<AskedEvents>, places?: { fromPos: number; toPos: number }) => {
    const asked: string[] = []
    const store = {
      runs: async () => (asked.push('runs'), [late, early]),
      places: async () => (asked.push('places'), places),
      hasIndexOf: () => true,
    } as unknown as SearchedStore
    return { sources: await sourcesOf(store, { ...everyEvent, ...query }), asked }
  }

  it('is every place, where no run is named', async () => {
    const places = { fromPos: 3, toPos: 7 }
    expect(await looking({}, places)).toEqual({ sources: [{ by: 'place', ...places }], asked: ['places'] })
    expect(await looking({ turn: 1, types: ['run_started'] }, places)).toMatchObject({ asked: ['places'] })
    expect(await looking({})).toEqual({ sources: [], asked: ['places'] })
  })

  it('is each run that may hold it, the one that began first first', async () => {
    const both = (source: object) => [
      { ...source, run: early },
      { ...source, run: late },
    ]
    expect(await looking({ sessionId: 'ann' })).toEqual({ sources: both({ by: 'run' }), asked: ['runs'] })
    expect((await looking({ runId })).sources).toEqual(both({ by: 'run' }))
    // Rows of its own run may hold the call in the turn that its id names, and not say so.
    const byCall = [
      { by: 'call', run: early },
      { by: 'call', run: late },
      { by: 'turn', run: late, turn: 1, isSegmented: true },
    ]
    expect((await looking({ toolCallId })).sources).toEqual(byCall)
    expect((await looking({ toolCallId, turn: 1, runId })).sources).toEqual(byCall)
    expect((await looking({ runId, turn: 1, types: ['run_started'] })).sources).toEqual(
      both({ by: 'turn', turn: 1 }),
    )
    expect((await looking({ runId, types: ['run_started', 'run_finished'] })).sources).toEqual([
      { by: 'type', run: early, type: 'run_started' },
      { by: 'type', run: early, type: 'run_finished' },
      { by: 'type', run: late, type: 'run_started' },
      { by: 'type', run: late, type: 'run_finished' },
    ])
  })

  it('is the run once for all types that have no index', async () => {
    const store = {
      runs: async () => [early],
      hasIndexOf: (type: string) => type === 'run_started',
    } as unknown as SearchedStore
    const sources = async (...types: readonly EventType[]) =>
      await sourcesOf(store, { ...everyEvent, runId, types })
    expect(await sources('tool_result', 'run_started', 'tool_started')).toEqual([
      { by: 'type', run: early, type: 'run_started' },
      { by: 'run', run: early, types: ['tool_result', 'tool_started'] },
    ])
    expect(await sources('run_started')).toEqual([{ by: 'type', run: early, type: 'run_started' }])
    expect(await sources('tool_result')).toEqual([{ by: 'run', run: early, types: ['tool_result'] }])
  })
})

describe('a batch of what was found', () => {
  const row = (pos: number, seq: number): FoundRow => ({ pos, seq, run_id: runId }) as unknown as FoundRow
  const rows = [row(3, 1), row(5, 2)]
  const byPlace: SearchSource = { by: 'place', fromPos: 1, toPos: 9 }
  const byRun: SearchSource = { by: 'run', run: { runId, pos: 1, headSeq: 9 } }

  it('ends after its last row where it is full', () => {
    expect(batchOf(rows, true, byPlace, { pos: 9, seq: 9 })).toEqual({ rows, next: rows[1] })
    expect(batchOf([], true, byPlace, { pos: 8, seq: 0 })).toEqual({ rows: [], next: { pos: 8, seq: 0 } })
  })

  it('ends where the search has come to, and is the last at the end', () => {
    expect(batchOf(rows, false, byPlace, { pos: 8, seq: 0 })).toEqual({ rows, next: { pos: 8, seq: 0 } })
    expect(batchOf(rows, false, byPlace, { pos: 9, seq: 0 })).toStrictEqual({ rows })
    expect(batchOf(rows, false, byRun, { pos: 99, seq: 8 })).toEqual({ rows, next: { pos: 99, seq: 8 } })
    expect(batchOf(rows, false, byRun, { pos: 1, seq: 9 })).toStrictEqual({ rows })
  })
})

describe('a search that can have no answer', () => {
  it('asks the store for nothing but whether it is open', async () => {
    const asked: unknown[] = []
    const store = { places: async (query: unknown) => void asked.push(query) } as unknown as SearchedStore
    expect(await Array.fromAsync(findEvents(store, { types: [] }))).toEqual([])
    expect(asked).toEqual([{ turn: null, toolCallId: null, types: null, fromAt: 0, toAt: -1 }])
  })

  it('begins each source right before its first place', async () => {
    const begun: unknown[] = []
    const store = {
      runs: async () => [
        { runId, pos: 20, headSeq: 9 },
        { runId: sampleRunId(2), pos: 10, headSeq: 9 },
      ],
      batch: async (_asked: unknown, { run }: { run: { pos: number } }, after: unknown) => {
        begun.push([run.pos, after])
        return { rows: [] }
      },
    } as unknown as SearchedStore
    expect(await Array.fromAsync(findEvents(store, { sessionId: 'ann' }))).toEqual([])
    expect(begun).toEqual([
      [10, { pos: 9, seq: 0 }],
      [20, { pos: 19, seq: 0 }],
    ])
  })
})
