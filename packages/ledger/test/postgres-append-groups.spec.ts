import { ownRows } from './support/own-rows.ts'
import type { RunId } from '@tallystick/core'
import type { Fact } from '@tallystick/core/vocabulary'
import { everyFact, sampleMessage, sampleRunId, stamped } from '@tallystick/core/testing'
import { describe, expect, it } from 'vitest'
import { genesisHash } from '../src/record/chain.ts'
import { storedBody } from '../src/content/event/stored-body.ts'
import { linkRows } from '../src/record/linked-row.ts'
import { appendStatement, type AppendItem } from '../src/postgres/write/append-group.ts'
import { int8Array, textArray } from '../src/postgres/write/binary-array.ts'
import { statementTexts } from '../src/postgres/rows/statements.ts'
import { chainFaults } from './support/postgres-chain.ts'
import { freshSchema, hasPostgres, openLedger, rowsOf, withClient } from './support/postgres-database.ts'

const runIds = [1, 2, 3, 4, 5].map(sampleRunId) as [RunId, RunId, RunId, RunId, RunId]
const text = (length: number): Fact => ({
  ...everyFact(runIds[0]).assistant_text_delta,
  text: 'x'.repeat(length),
})

/** Facts after a head, as an append of them is handed to the database. */
function item(
  runId: RunId,
  { seq, epoch = 1, hash = genesisHash }: { seq: number; epoch?: number; hash?: Uint8Array },
  facts: readonly Fact[],
  takes: readonly string[] = [],
): AppendItem {
  const events = stamped(runId, facts, { afterSeq: seq, epoch })
  const bodies = events.map((event) => storedBody(event))
  const linked = linkRows(
    hash,
    ownRows(events, (event) => storedBody(event).bytes),
  )
  const contents = bodies.map((body) => body.contents)
  const given = {
    runId,
    expectedSeq: seq,
    epoch,
    previousHash: hash,
    durability: 'lazy',
    isSealed: false,
    lease: null,
  } as const
  const histories = events.map(() => undefined)
  return { ...given, linked, contents, histories, takes, events: events.length, bytes: 1 }
}

async function append(schema: string, group: readonly AppendItem[]): Promise<readonly boolean[]> {
  const { text: statement, values } = appendStatement(statementTexts(schema), group)
  const [row] = await rowsOf<{ places: readonly (string | null)[] }>(statement, values)
  return group.map((_item, index) => row?.places[index] != null)
}

/** A schema with runs of one event each, and the hashes that they end with. */
async function startedSchema(): Promise<{ readonly schema: string; readonly hashes: readonly Uint8Array[] }> {
  const schema = freshSchema()
  await openLedger(schema).head(runIds[0])
  const starts = runIds.slice(0, 4).map((runId) => item(runId, { seq: 0 }, [everyFact(runId).run_started]))
  expect(await append(schema, starts)).toEqual([true, true, true, true])
  return { schema, hashes: starts.map(({ linked }) => linked[0]?.hash as Uint8Array) }
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('appends to several runs in one statement', () => {
  it('are kept or refused each by its own head: its seq, its epoch and its hash', async () => {
    const { schema, hashes } = await startedSchema()
    const ledger = openLedger(schema)
    const command = { type: 'steer', message: sampleMessage('x'), receipt: 'r' } as const
    for (const runId of runIds.slice(0, 4)) await ledger.put(runId, { key: 'k', command, at: 1 })
    const [good, lateSeq, lateEpoch, otherHash, begins] = runIds
    const [hash0, hash1, hash2] = hashes as [Uint8Array, Uint8Array, Uint8Array]
    const swapped = await append(schema, [
      item(lateSeq, { seq: 2, hash: hash1 }, [text(3)], ['k']),
      item(good, { seq: 1, hash: hash0 }, [text(1), text(2)], ['k']),
      item(lateEpoch, { seq: 1, epoch: 2, hash: hash2 }, [text(4)], ['k']),
      item(begins, { seq: 0 }, [everyFact(begins).run_started, text(5)]),
      item(otherHash, { seq: 1, hash: hash0 }, [text(6)], ['k']),
    ])
    expect(swapped).toEqual([false, true, false, true, false])
    const heads = await Promise.all(runIds.map(async (runId) => (await ledger.head(runId))?.seq))
    expect(heads).toEqual([3, 1, 1, 1, 2])
    for (const runId of runIds) expect(await chainFaults(ledger, runId)).toEqual([])
    const inboxes = await Promise.all(runIds.slice(0, 4).map((runId) => ledger.inbox(runId)))
    expect(inboxes.map(({ length }) => length)).toEqual([0, 1, 1, 1])
    expect(await rowsOf(`select count(*)::int as payloads from ${schema}.payload`)).toEqual([{ payloads: 8 }])
  })

  it('are refused each alone too, for its seq, its epoch or its hash alone', async () => {
    const { schema, hashes } = await startedSchema()
    const [hash0, hash1] = hashes as [Uint8Array, Uint8Array]
    const refused = [
      item(runIds[0], { seq: 2, hash: hash0 }, [text(1)]),
      item(runIds[0], { seq: 1, epoch: 2, hash: hash0 }, [text(1)]),
      item(runIds[0], { seq: 1, hash: hash1 }, [text(1)]),
    ]
    for (const each of refused) expect(await append(schema, [each])).toEqual([false])
    expect(await append(schema, [item(runIds[0], { seq: 1, hash: hash0 }, [text(1)])])).toEqual([true])
  })

  it('begin a run once where two do', async () => {
    const { schema } = await startedSchema()
    const [again, fresh] = [runIds[0], runIds[4]]
    const group = [again, fresh].map((runId) => item(runId, { seq: 0 }, [everyFact(runId).run_started]))
    expect(await append(schema, group)).toEqual([false, true])
    expect(await append(schema, group.slice(1))).toEqual([false])
    expect(await append(schema, [item(fresh, { seq: 0, epoch: 2 }, [text(1)])])).toEqual([false])
  })

  it('keep a large content once, and of one that was refused nothing', async () => {
    const { schema, hashes } = await startedSchema()
    const [hash0, hash1, hash2] = hashes as [Uint8Array, Uint8Array, Uint8Array]
    const swapped = await append(schema, [
      item(runIds[0], { seq: 1, hash: hash0 }, [text(100_000), text(7), text(100_000)]),
      item(runIds[1], { seq: 1, hash: hash1 }, [text(100_000), text(200_000)]),
      item(runIds[2], { seq: 2, hash: hash2 }, [text(300_000)]),
    ])
    expect(swapped).toEqual([true, true, false])
    const contents = await rowsOf(
      `select length(body) as bytes, (select count(*)::int from ${schema}.content_use where content_use.digest = content.digest) as uses
      from ${schema}.content order by 1`,
    )
    expect(contents).toEqual([
      { bytes: 100_000, uses: 3 },
      { bytes: 200_000, uses: 1 },
    ])
    const read = await Array.fromAsync(openLedger(schema).read(runIds[1], { fromSeq: 3 }))
    expect(read).toEqual(stamped(runIds[1], [text(200_000)], { afterSeq: 2 }))
  })
})

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('an array in binary form', () => {
  it('is what the text form would be', async () => {
    const numbers = [
      0,
      1,
      -1,
      2 ** 31,
      -(2 ** 31) - 1,
      2 ** 32,
      Number.MAX_SAFE_INTEGER,
      Number.MIN_SAFE_INTEGER,
    ]
    const texts = ['', null, 'a', '서울 🌧', '{"a",\\}', 'null']
    await withClient(async (client) => {
      const { rows } = await client.query(
        'select $1::int8[] = $2::int8[] as numbers, $3::text[] = $4::text[] as texts, cardinality($5::text[]) as none',
        [int8Array(numbers), numbers, textArray(texts), texts, textArray([])],
      )
      expect(rows).toEqual([{ numbers: true, texts: true, none: 0 }])
    })
  })
})
