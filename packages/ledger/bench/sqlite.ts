import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { rowDigest } from '../src/record/chain.ts'
import type { LinkedRow } from '../src/record/linked-row.ts'
import { sqliteLedger } from '../src/sqlite/sqlite-ledger.ts'
import type { Compared, RawStore } from './store.ts'

/** A ledger file, and one of the same schema without its triggers, written by better-sqlite3 alone. */
export async function sqliteCompared(): Promise<Compared> {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-bench-'))
  const rawPath = join(folder, 'raw.db')
  const made = sqliteLedger(rawPath)
  await made.head('' as never)
  await made.close()
  const database = new BetterSqlite3(rawPath)
  database.pragma('journal_mode = wal')
  database.pragma('synchronous = full')
  const ledger = sqliteLedger(join(folder, 'ledger.db'))
  return {
    ...{ name: 'SQLite', ledger, raw: rawStore(database) },
    async close() {
      await ledger.close()
      database.close()
      rmSync(folder, { recursive: true })
    },
  }
}

function rawStore(database: BetterSqlite3.Database): RawStore {
  const triggers = database.prepare<[], { name: string }>(
    `select name from sqlite_schema where type = 'trigger'`,
  )
  for (const { name } of triggers.all()) database.exec(`drop trigger ${name}`)
  const insertEvent = database.prepare(
    `insert into event (run_id, seq, epoch, type, v, turn, tool_call_id, at, once_key, body_commit, hash)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const insertPayload = database.prepare('insert into payload (pos, salt, body) values (?, ?, ?)')
  const insertRun = database.prepare('insert into run values (?, ?, ?, ?, ?, ?, null, null)')
  const moveHead = database.prepare('update run set head_seq = ?, head_hash = ?, seal = ? where run_id = ?')
  const read = database.prepare<[string], { body: Buffer }>(
    'select event.*, salt, body from event join payload using (pos) where run_id = ? order by seq',
  )
  const write = (rows: readonly LinkedRow[]): void => {
    let pos: number | bigint = 0
    for (const { envelope: event, onceKey = null, bodyCommit, hash, salt, body } of rows) {
      const { runId, seq, epoch, type, v, turn, toolCallId = null, at } = event
      const place = insertEvent.run(
        runId,
        seq,
        epoch,
        type,
        v,
        turn,
        toolCallId,
        at,
        onceKey,
        bodyCommit,
        hash,
      )
      pos = place.lastInsertRowid
      insertPayload.run(pos, salt, body)
    }
    const { envelope: event, hash } = rows.at(-1) as LinkedRow
    const { runId, seq, epoch } = event
    const seal = emptySeal
    if (rows[0]?.envelope.seq === 1) insertRun.run(runId, pos, seq, hash, epoch, seal)
    else moveHead.run(seq, hash, seal, runId)
  }
  const transaction = database.transaction(write)
  return {
    append: (rows) => transaction.immediate(rows),
    read(runId) {
      let events = 0
      for (const { body } of read.iterate(runId)) {
        JSON.parse(body.toString())
        events++
      }
      return events
    },
  }
}

const emptySeal = rowDigest({ runId: '', pos: 0, headSeq: 0, headHash: new Uint8Array(32), epoch: 1 })
