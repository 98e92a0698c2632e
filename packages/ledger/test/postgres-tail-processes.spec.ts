import type { RunId } from '@tallystick/core'
import type { TailCursor } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { postgresChild } from './support/postgres-children.ts'
import { connectionString, freshSchema, hasPostgres, openLedger } from './support/postgres-database.ts'
import { openTransaction } from './support/postgres-transaction.ts'

interface Seen {
  readonly cursor: TailCursor
  readonly runId: RunId
  readonly seq: number
}

const [writers, runs, appends] = [3, 5, 60]
/** Each append holds two. */
const events = writers * appends * 2

/** Holds transactions open while others write, one after the other, until the parent says that they have ended. */
async function holdBack(schema: string, isOver: () => boolean): Promise<number> {
  const ledger = openLedger(schema)
  let held = 0
  while (!isOver()) {
    const transaction = await openTransaction(schema)
    await transaction.write()
    // Whatever is committed meanwhile waits for it.
    while (!isOver() && (await ledger.horizon()).waitingEvents < 20);
    await (held % 2 === 0 ? transaction.rollback() : transaction.commit())
    held++
  }
  return held
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a tail that follows several processes in Postgres', () => {
  it('misses nothing and repeats nothing, also where its own process is killed and another continues', async () => {
    const schema = freshSchema()
    await openLedger(schema).head('' as RunId)
    const children = Array.from({ length: writers }, (_, index) =>
      postgresChild([
        'contend',
        connectionString,
        schema,
        JSON.stringify([`writer ${index}`, runs, appends]),
      ]),
    )
    const writing = { isOver: false }
    const written = Promise.all(children.map((child) => child.ended())).finally(() => (writing.isOver = true))
    const holding = holdBack(schema, () => writing.isOver)
    const seen: Seen[] = []
    let followers = 0
    while (seen.length < events) {
      const follower = postgresChild(['follow', connectionString, schema, seen.at(-1)?.cursor ?? ''])
      followers++
      // The first ones are killed in the middle of it.
      const until = followers < 4 ? seen.length + 50 : events
      while (seen.length < until) seen.push((await follower.hear()) as Seen)
      await follower.kill()
    }
    await written
    expect(await holding).toBeGreaterThan(1)
    expect(followers).toBe(4)
    const seqs = Map.groupBy(seen, ({ runId }) => runId)
    expect(seqs.size).toBe(runs)
    const ledger = openLedger(schema)
    for (const [runId, ofRun] of seqs) {
      const status = (await ledger.head(runId))?.seq ?? 0
      expect(ofRun.map(({ seq }) => seq)).toEqual(Array.from({ length: status }, (_, index) => index + 1))
    }
    const again = await Array.fromAsync(ledger.tail(), ({ cursor, event: { runId, seq } }) => ({
      cursor,
      runId,
      seq,
    }))
    expect(again).toEqual(seen)
  })
})
