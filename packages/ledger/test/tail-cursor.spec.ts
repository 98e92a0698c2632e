import { ConfigurationError, LedgerDamagedError } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { RowReader } from '../src/store/read-events.ts'
import type { StoreDatabase } from '../src/store/database.ts'
import { tailEvents, type BegunTail, type TailRow, type TailStart } from '../src/store/tail-events.ts'

const run = sampleRunId(1)
const hash = '0123456789ab-_x'.padEnd(43, 'A')
const cursor = (xid: string, pos: string, digest = '0123456789ab', runId: string = run): string =>
  `${xid}-${pos}-${digest}-${runId}`

/** Reads a tail of a store whose only event is at the place that is asked for, and notes what was asked. */
async function tailed(after: string | undefined, begun: Partial<BegunTail> = {}) {
  const asked: TailStart[] = []
  const tail = tailEvents(
    {
      database: { requireOpen: () => {} } as StoreDatabase,
      async beginTail(start: TailStart) {
        asked.push(start)
        return { isDropped: false, batch: async () => ({ rows: [], isLast: true }), ...begun }
      },
    },
    new RowReader({ ask: async () => [] }, undefined),
    after,
  )
  const ending = await Array.fromAsync(tail).then(
    (events) => events.length,
    (error: unknown) => error,
  )
  return { asked, ending }
}

describe('the cursor of a tail', () => {
  it.each([
    [cursor('0', '1'), '0', 1],
    [cursor('18446744073709551615', '9007199254740991'), '18446744073709551615', 9_007_199_254_740_991],
  ])('%s is a place that a store may be asked for', async (after, xid, pos) => {
    const { asked, ending } = await tailed(after, { atCursor: { runId: run, hash } })
    expect(asked).toEqual([{ xid, pos, runId: run, hash: '0123456789ab' }])
    expect(ending).toBe(0)
  })

  it.each([
    ...['', 'x', cursor('', '1'), cursor('01', '1'), cursor('0', '0'), cursor('-1', '1'), cursor('0', '1.0')],
    ...[cursor('0', '1.'), cursor('0', '1.1.1'), cursor('0', '1.1000')],
    ...[cursor('18446744073709551616', '1'), cursor('0', '9007199254740992'), cursor('0', '1', 'ABCD')],
  ])('%j is not a place, and no store is asked for it', async (after) => {
    const { asked, ending } = await tailed(after, { atCursor: { runId: run, hash } })
    expect(ending).toBeInstanceOf(ConfigurationError)
    expect(asked).toEqual([])
  })

  it.each<readonly [string, Partial<BegunTail>, boolean]>([
    ['has that event', { atCursor: { runId: run, hash } }, true],
    ['has another event there', { atCursor: { runId: run, hash: 'B'.repeat(43) } }, false],
    [
      'has the event of another run there',
      { atCursor: { runId: sampleRunId(2), hash }, isDropped: true },
      false,
    ],
    ['has dropped its run, on record', { isDropped: true }, true],
    ['has none', {}, false],
  ])('is known to a store that %s, or refused', async (_name, begun, isKnown) => {
    const { ending } = await tailed(cursor('5', '7'), begun)
    expect(ending instanceof ConfigurationError).toBe(!isKnown)
  })

  it('is not needed: a tail without one begins before every event', async () => {
    expect(await tailed(undefined)).toEqual({ asked: [{ xid: '0', pos: 0, runId: '' }], ending: 0 })
  })
})

it.each<readonly [string, readonly (readonly [xid: string, pos: number])[]]>([
  ['repeats a place', [['7', 3]]],
  ['goes back in a transaction', [['7', 2]]],
  ['goes back to an earlier transaction', [['6', 9]]],
])('a tail that %s is damage, and is not read for ever', async (_name, places) => {
  const rows = places.map(([xid, pos]) => ({ xid, pos, run_id: run }) as unknown as TailRow)
  const { ending } = await tailed(cursor('7', '3'), {
    atCursor: { runId: run, hash },
    batch: async () => ({ rows, isLast: false }),
  })
  expect(ending).toBeInstanceOf(LedgerDamagedError)
  expect(String(ending)).toMatch(/its tail/)
})
