import { ownRows } from './own-rows.ts'
import type { RunId } from '@tallystick/core'
import type { Fact } from '@tallystick/core/vocabulary'
import { stamped } from '@tallystick/core/testing'
import { Kysely, PostgresDialect } from 'kysely'
import { Client, Pool } from 'pg'
import { onTestFinished } from 'vitest'
import { genesisHash } from '../../src/record/chain.ts'
import { linkRows } from '../../src/record/linked-row.ts'
import { appendStatement } from '../../src/postgres/write/append-group.ts'
import { makeLedger } from '../../src/postgres/migrations/0001-ledger.ts'
import { statementTexts } from '../../src/postgres/rows/statements.ts'
import { connectionString } from './postgres-database.ts'

/** A writer that knows the first schema only, as a process does that an older release drives. */
export interface OldWriter {
  /** Appends after what it appended before. */
  readonly append: (runId: RunId, facts: readonly Fact[]) => Promise<number>
}

/** Makes a ledger of the first version. */
export async function makeFirstSchema(schema: string): Promise<void> {
  const database = new Kysely<{ ledger: { application: string; version: number } }>({
    dialect: new PostgresDialect({ pool: new Pool({ connectionString, max: 1 }) }),
  })
  try {
    await database.schema.createSchema(schema).execute()
    await database.transaction().execute(async (transaction) => {
      await makeLedger(transaction as unknown as Kysely<unknown>, schema)
      const tables = transaction.withSchema(schema)
      await tables.insertInto('ledger').values({ application: 'tallystick', version: 1 }).execute()
    })
  } finally {
    await database.destroy()
  }
}

/**
 * Writes by statements that are prepared once and name nothing of later versions: no column and no table. What they are
 * planned for may change beneath them.
 */
export async function oldWriter(schema: string): Promise<OldWriter> {
  const client = new Client({ connectionString })
  await client.connect()
  onTestFinished(() => client.end().catch(() => undefined))
  const texts = statementTexts(schema)
  const heads = new Map<RunId, { readonly seq: number; readonly hash: Uint8Array }>()
  return {
    async append(runId, facts) {
      const { seq, hash } = heads.get(runId) ?? { seq: 0, hash: genesisHash }
      const events = stamped(runId, facts, { afterSeq: seq })
      const linked = linkRows(hash, ownRows(events))
      const expected = { runId, expectedSeq: seq, epoch: 1, previousHash: hash }
      const kept = {
        durability: 'barrier',
        contents: facts.map(() => []),
        histories: facts.map(() => undefined),
        isSealed: false,
        lease: null,
      } as const
      const item = { ...expected, ...kept, linked, takes: [], events: events.length, bytes: 1 }
      const { name, text, values } = appendStatement(texts, [item])
      const { rows } = await client.query<{ places: unknown[] }>({
        text: ofOneEventARow(text),
        values: [...values],
        ...(name !== undefined && { name }),
      })
      if (rows[0]?.places[0] == null) throw new Error(`The append to ${runId} after ${seq} was refused.`)
      heads.set(runId, { seq: seq + events.length, hash: linked.at(-1)?.hash ?? hash })
      return seq + events.length
    },
  }
}

/** The statement of an append as older releases sent it, which knew no rows of several events. */
function ofOneEventARow(text: string): string {
  const older = text
    .replace('.event (pos, run_id, first_seq, seq,', '.event (pos, run_id, seq,')
    .replace('select pos, run_id, nullif(first_seq, 0), seq,', 'select pos, run_id, seq,')
  if (older.length !== text.length - 'first_seq, nullif(first_seq, 0), '.length)
    throw new Error('Not that statement.')
  return older
}
