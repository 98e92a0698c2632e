import { sampleRunId } from '@tallystick/core/testing'
import { describe, expect, it } from 'vitest'
import { batchOf, askedEvents, isTimed, type FoundRow, type SearchSource } from '../src/read/event-search.ts'
import { findEvents } from '../src/read/find-events.ts'

const runId = sampleRunId(1)
const rowsAt = (places: readonly (readonly [pos: number, seq: number])[]): readonly FoundRow[] =>
  places.map(([pos, seq]) => ({ pos, seq, run_id: runId }) as unknown as FoundRow)

/** How a search ends that finds rows at these places. */
async function searched(places: readonly (readonly [pos: number, seq: number])[], isOfRun: boolean) {
  const store = {
    runs: async () => [{ runId, pos: 3, headSeq: 9 }],
    places: async () => ({ fromPos: 3, toPos: 9 }),
    hasIndexOf: () => true,
    requireOpen: () => {},
    batch: async () => ({ rows: rowsAt(places) }),
  }
  return await Array.fromAsync(findEvents(store, isOfRun ? { runId } : {})).then(String, String)
}

describe('a search', () => {
  it.each<readonly [string, boolean, readonly (readonly [number, number])[]]>([
    [
      'a place again',
      false,
      [
        [3, 1],
        [3, 2],
      ],
    ],
    [
      'a place before',
      false,
      [
        [4, 1],
        [3, 2],
      ],
    ],
    ['a place before the first', false, [[2, 1]]],
    [
      'a place of a run again',
      true,
      [
        [3, 1],
        [3, 2],
      ],
    ],
    [
      'an event of a run again',
      true,
      [
        [3, 1],
        [4, 1],
      ],
    ],
    [
      'an event of a run before',
      true,
      [
        [3, 2],
        [4, 1],
      ],
    ],
    ['no event of a run', true, [[3, 0]]],
  ])('that an index leads to %s is stopped', async (_name, isOfRun, places) => {
    expect(await searched(places, isOfRun)).toMatch(/^LedgerDamagedError: .*come out of order/)
  })

  it.each<readonly [boolean, readonly (readonly [number, number])[]]>([
    [
      false,
      [
        [3, 5],
        [5, 2],
      ],
    ],
    [
      true,
      [
        [3, 1],
        [5, 4],
      ],
    ],
  ])('that an index leads on, of a run: %s, looks at the events', async (isOfRun, places) => {
    expect(await searched(places, isOfRun)).not.toMatch(/come out of order/)
  })
})

describe('a batch of a search', () => {
  const rows = rowsAt([
    [4, 2],
    [6, 3],
  ])
  const [, last] = rows
  const byPlace: SearchSource = { by: 'place', fromPos: 1, toPos: 9 }
  const ofRun: SearchSource = { by: 'run', run: { runId, pos: 1, headSeq: 9 } }

  it.each<readonly [string, Parameters<typeof batchOf>, object]>([
    ['its last event where it is full', [rows, true, byPlace, { pos: 9, seq: 0 }], { rows, next: last }],
    ['what was looked at', [rows, false, byPlace, { pos: 8, seq: 0 }], { rows, next: { pos: 8, seq: 0 } }],
    ['nothing more at the last place', [rows, false, byPlace, { pos: 9, seq: 0 }], { rows }],
    [
      'what was looked at in a run',
      [rows, false, ofRun, { pos: 9, seq: 8 }],
      { rows, next: { pos: 9, seq: 8 } },
    ],
    ['nothing more at the head of a run', [rows, false, ofRun, { pos: 0, seq: 9 }], { rows }],
  ])('ends with %s', (_name, given, expected) => {
    expect(batchOf(...given)).toEqual(expected)
  })
})

describe('what a search is asked', () => {
  const [min, max] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
  const nothing = { turn: null, toolCallId: null, types: null, fromAt: min, toAt: max }

  it.each<readonly [Parameters<typeof askedEvents>[0], object | undefined]>([
    [{}, nothing],
    [{ types: [] }, undefined],
    [{ types: ['tool_result', 'tool_result'] }, { ...nothing, types: ['tool_result'] }],
    [{ turn: 0.5 }, undefined],
    [{ turn: 0 }, { ...nothing, turn: 0 }],
    [
      { fromAt: 4.2, toAt: 5.8 },
      { ...nothing, fromAt: 5, toAt: 5 },
    ],
    [{ fromAt: 6, toAt: 5 }, undefined],
    [{ fromAt: -Infinity, toAt: Infinity }, nothing],
    [
      { runId, sessionId: 's' },
      { ...nothing, runId, sessionId: 's' },
    ],
  ])('by %j has whole bounds, or no answer', (query, expected) => {
    expect(askedEvents(query)).toEqual(expected)
  })

  it('is bounded in time where either end is', () => {
    const ends = [nothing, { ...nothing, fromAt: min + 1 }, { ...nothing, toAt: max - 1 }]
    expect(ends.map(isTimed)).toEqual([false, true, true])
  })
})
