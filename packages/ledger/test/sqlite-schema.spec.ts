import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { everyFact, sampleMessage, sampleRunId, stamped } from '@tallystick/core/testing'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { withRaw } from './support/raw-database.ts'
import { rareType } from '../src/sqlite/migrations/0010-shared-rows.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const run = sampleRunId(1)

async function ledgerFile(): Promise<string> {
  const path = emptyLedgerFile()
  const ledger = sqliteLedger(path)
  const facts = everyFact(run)
  const events = stamped(run, [facts.run_started, facts.tool_started, facts.tool_result])
  // One at a time, so that each has a row of its own.
  for (const [expectedSeq, event] of events.entries()) {
    await ledger.append(run, { expectedSeq, epoch: 1 }, [event], { durability: 'barrier' })
  }
  const command = { type: 'steer', message: sampleMessage('x'), receipt: 'r' } as const
  for (const key of ['k1', 'k2']) await ledger.put(run, { key, command, at: 1 })
  const next = stamped(run, [facts.cancel_requested], { afterSeq: 3 })
  await ledger.append(run, { expectedSeq: 3, epoch: 1 }, next, {
    durability: 'barrier',
    consumedInboxKeys: ['k1'],
  })
  await ledger.acquire(run)
  await ledger.close()
  return path
}

describe('the schema of a ledger file', () => {
  it('is the one on record: a change needs a migration of its own', async () => {
    const path = await ledgerFile()
    const query = `select sql from sqlite_schema where sql is not null and name <> 'sqlite_sequence' order by type desc, name`
    const statements = withRaw(path, (database) => database.prepare<[], { sql: string }>(query).all())
    const schema = `${statements.map(({ sql }) => sql).join(';\n')};\n`
    expect(schema).toBe(readFileSync(join(import.meta.dirname, 'golden', 'schema.sql'), 'utf8'))
  })

  const ending = `insert into event (run_id, seq, epoch, type, v, turn, at, once_key, body_commit, hash)
    select run_id, 5, epoch, 'run_finished', v, turn, at, 'run_finished', body_commit, hash from event where seq = 4`

  it('lets a run end once its inbox is read, and takes no entry after that', async () => {
    const path = await ledgerFile()
    withRaw(path, (database) => {
      expect(() => database.exec(ending)).toThrow(/^tallystick: a run ends with its inbox read$/)
      database.exec(`update inbox set taken_seq = 4 where key = 'k2'`)
      database.exec(ending)
      const late = `insert into inbox (run_id, key, kind, body, at) select run_id, 'k3', kind, body, 2 from inbox where key = 'k1'`
      expect(() => database.exec(late)).toThrow(/^tallystick: a run that has ended takes no command$/)
    })
  })

  // What no user may do, not even with an SQL shell.
  const forbidden = [
    `update event set at = 1 where seq = 2`,
    `update event set seq = 9 where seq = 4`,
    `delete from event where seq = 4`,
    `insert or replace into event select * from event where seq = 2`,
    `insert into event select pos + 10, run_id, seq + 4, epoch, type, v, turn, null, at, null, body_commit, hash, null from event where seq = 3`,
    `insert into event select pos + 10, run_id, 0, epoch, type, v, turn, null, at, null, body_commit, hash, null from event where seq = 3`,
    ...[
      `seq + 2, once_key, seq + 2`,
      `seq + 257, once_key, seq + 1`,
      `seq + 2, 'run_finished', seq + 1`,
      `seq + 3, once_key, seq + 2`,
    ].map(
      (values) =>
        `insert into event (pos, run_id, epoch, type, v, turn, at, body_commit, hash, seq, once_key, first_seq)
           select pos + 500, run_id, epoch, type, v, turn, at, body_commit, hash, ${values} from event where seq = 4`,
    ),
    `update payload set body = x'7b7d' where pos = 2`,
    `delete from payload where pos = 2`,
    `insert into removal values (2, '${run}', 2, 2, 'redacted', 1, 'me', null, '{}', null, x'00')`,
    `insert into removal values (1, 'other', 1, 9, 'redacted', 1, 'me', null, '{}', null, x'00'); delete from payload where pos = 2`,
    `insert into removal values (1, '${run}', 1, 9, 'expired', 1, 'me', null, '{}', null, x'00'); delete from event`,
    `insert or replace into payload values (2, x'00', x'7b7d')`,
    `delete from run`,
    `update run set head_seq = 3`,
    `update run set epoch = 1`,
    `update run set head_hash = x'00'`,
    `update run set run_id = 'other'`,
    `insert or replace into run select run_id, pos, 0, head_hash, 1, seal, null, null from run`,
    `insert or replace into run select 'other', pos + 10, 1, head_hash, 1, seal, session_id, session_place from run`,
    `update run set session_place = 7`,
    `update run set session_id = 'other'`,
    `delete from inbox`,
    `update inbox set body = x'7b7d' where key = 'k2'`,
    `update inbox set taken_seq = null where key = 'k1'`,
    `update inbox set taken_seq = 9 where key = 'k1'`,
    `insert or replace into inbox select pos, run_id, key, kind, body, 2, null from inbox where key = 'k1'`,
    `insert or replace into inbox (run_id, key, kind, body, at) select run_id, key, kind, body, 2 from inbox where key = 'k1'`,
    ending,
  ]
  it.each(forbidden)('refuses: %s', async (statement) => {
    const path = await ledgerFile()
    withRaw(path, (database) => {
      // As in the sqlite3 shell: REPLACE removes rows without firing a delete trigger.
      database.pragma('recursive_triggers = off')
      const contents = (): unknown =>
        ['run', 'event', 'payload', 'inbox'].map((table) => database.prepare(`select * from ${table}`).all())
      const before = contents()
      expect(() => database.exec(statement)).toThrow(/^tallystick: /)
      expect(contents()).toEqual(before)
    })
  })

  it.each([
    ['a second start of an attempt', `'tool_started ' || tool_call_id || ' 1'`],
    ['a second result of a call', `'tool_result ' || tool_call_id`],
  ])('keeps out %s by an index, whatever a writer believes', async (_name, onceKey) => {
    const path = await ledgerFile()
    withRaw(path, (database) => {
      const second = `insert into event (run_id, seq, epoch, type, v, turn, tool_call_id, at, once_key, body_commit, hash)
        select run_id, 5, 2, type, v, turn, tool_call_id, at, ${onceKey}, body_commit, hash from event where seq = 3`
      expect(() => database.exec(second)).toThrow(/UNIQUE constraint failed/)
    })
  })

  it('lets a payload go when its removal is on record, and a run that was dropped; neither comes back', async () => {
    const path = await ledgerFile()
    withRaw(path, (database) => {
      const removal = (pos: number, range: string, kind: string): string =>
        `insert into removal values (${pos}, '${run}', ${range}, '${kind}', 1, 'me', null, null, null, x'00')`
      database.exec(removal(1, '2, 2', 'redacted'))
      expect(() => database.exec('delete from payload where pos = 1')).toThrow(/removal is on record/)
      expect(database.prepare('delete from payload where pos = 2').run().changes).toBe(1)
      expect(() => database.exec('delete from event')).toThrow(/never removed/)
      expect(() => database.exec(`update removal set "by" = 'you'`)).toThrow(/never changed/)
      expect(() => database.exec('delete from removal')).toThrow(/never removed/)
      database.exec(removal(2, '1, 4', 'dropped'))
      database.exec('create temp table kept as select * from run')
      for (const table of ['payload', 'inbox', 'event', 'run']) database.exec(`delete from ${table}`)
      expect(() => database.exec('insert into run select * from kept')).toThrow(/does not come back/)
    })
  })

  it('refuses a value of another type', async () => {
    const path = await ledgerFile()
    withRaw(path, (database) => {
      expect(() => database.exec(`insert into payload values (99, 'salt as text', x'7b7d')`)).toThrow(/BLOB/)
    })
  })

  it.each([
    [`run_id = 'x' and seq >= 5 and seq <= 9 order by seq`, 'event_seq|sqlite_autoindex_event'],
    [`run_id = 'x' and type = 'run_finished' and ${rareType} order by seq`, 'event_rare_type'],
    [`tool_call_id = 'call_1' order by seq`, 'event_tool_call'],
    [`at >= 1 and at < 2`, 'event_at'],
  ])('finds events where %s without going through all', async (where, index) => {
    const path = await ledgerFile()
    const plan = withRaw(path, (database) =>
      database.prepare<[], { detail: string }>(`explain query plan select * from event where ${where}`).all(),
    )
    expect(plan.map(({ detail }) => detail).join('; ')).toMatch(
      new RegExp(`^SEARCH event USING INDEX (${index})`),
    )
  })
})
