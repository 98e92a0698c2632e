import { sampleRunId } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { withRaw } from './support/raw-database.ts'
import { recordTakenOverRun } from './support/taken-over-run.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const run = sampleRunId(1)

async function ledgerFile(): Promise<string> {
  const path = emptyLedgerFile()
  await recordTakenOverRun(sqliteLedger(path), run)
  return path
}

describe('the schema of a ledger file', () => {
  it('is as small as it is meant to be', async () => {
    const path = await ledgerFile()
    const count = (type: string): unknown =>
      withRaw(path, (database) =>
        database
          .prepare(`select count(*) from sqlite_schema where type = ? and name not like 'sqlite_%'`)
          .pluck()
          .get(type),
      )
    expect([count('table'), count('trigger')]).toEqual([9, 13])
  })

  const ending = 'update run set ended_at = 9'

  it('lets a run end once its inbox is read, and takes no entry after that', async () => {
    const path = await ledgerFile()
    withRaw(path, (database) => {
      expect(() => database.exec(ending)).toThrow(/^tallystick: .*ends only with its inbox read$/)
      database.exec(`update inbox set taken_seq = 4 where key = 'k2'`)
      database.exec(ending)
      const late = `insert into inbox (run_id, key, at, command) select run_id, 'k3', 2, command from inbox where key = 'k1'`
      expect(() => database.exec(late)).toThrow(/^tallystick: .*a run that has not ended$/)
    })
  })

  // What no user may do, not even with an SQL shell.
  const forbidden = [
    `update event set at = 1 where seq = 2`,
    `update event set seq = 9 where seq = 4`,
    `delete from event where seq = 4`,
    `update event set body = '{}' where pos = 2`,
    `update event set salt = null, commitment = hash where pos = 2`,
    `insert into removal values (1, 'other', 2, 'redacted', 1, 'me', null, '', ''); update event set salt = null, commitment = hash where pos = 2`,
    `insert into removal values (1, '${run}', 4, 'expired', 1, 'me', null, '', ''); delete from event`,
    `delete from run`,
    `update run set head_seq = 3`,
    `update run set epoch = 1`,
    `update run set head_hash = ''`,
    `update run set run_id = 'other'`,
    `insert or replace into run select * from run`,
    `insert or replace into run select pos + 10, 'other', 1, head_hash, 1, session_id, session_place, null, null, seal, null, null, null from run`,
    `update run set session_place = 7`,
    `update run set session_id = 'other'`,
    `delete from inbox`,
    `update inbox set command = '{}' where key = 'k2'`,
    `update inbox set taken_seq = null where key = 'k1'`,
    `update inbox set taken_seq = 9 where key = 'k1'`,
    `insert or replace into inbox select pos, run_id, key, 2, command, null from inbox where key = 'k1'`,
    `insert or replace into inbox (run_id, key, at, command) select run_id, key, 2, command from inbox where key = 'k1'`,
    `update history set message = 'x'; delete from inbox`,
    ending,
  ]
  it.each(forbidden)('refuses: %s', async (statement) => {
    const path = await ledgerFile()
    withRaw(path, (database) => {
      // As in the sqlite3 shell: REPLACE removes rows without firing a delete trigger.
      database.pragma('recursive_triggers = off')
      const contents = (): unknown =>
        ['run', 'event', 'inbox', 'removal'].map((table) => database.prepare(`select * from ${table}`).all())
      const before = contents()
      expect(() => database.transaction(() => database.exec(statement))()).toThrow(/^tallystick: /)
      expect(contents()).toEqual(before)
    })
  })

  it.each([
    ['a second start of an attempt', 2],
    ['a second result of a call', 3],
  ])('keeps out %s by an index, whatever a writer believes', async (_name, seq) => {
    const path = await ledgerFile()
    withRaw(path, (database) => {
      const second = `insert into event select 99, run_id, 5, type, turn, tool_call_id, attempt, at, epoch, v, key_id, body, salt,
        commitment, hash from event where seq = ${seq}`
      expect(() => database.exec(second)).toThrow(/UNIQUE constraint failed/)
    })
  })

  it('lets content go when its removal is on record, and a run that was dropped; neither comes back', async () => {
    const path = await ledgerFile()
    withRaw(path, (database) => {
      database.pragma('foreign_keys = on')
      const removal = (pos: number, seq: number, kind: string): string =>
        `insert into removal values (${pos}, '${run}', ${seq}, '${kind}', 1, 'me', null, '', '')`
      const blank = (seq: number): string =>
        `update event set body = '{}', salt = null, commitment = hash where seq = ${seq}`
      database.exec(removal(1, 2, 'redacted'))
      expect(() => database.exec(blank(1))).toThrow(/that is on record/)
      database.exec(blank(2))
      expect(() => database.exec(blank(2))).toThrow(/loses its content once/)
      expect(() => database.exec('delete from event')).toThrow(/never removed/)
      expect(() => database.exec(`update removal set "by" = 'you'`)).toThrow(/never changed/)
      expect(() => database.exec('delete from removal')).toThrow(/never removed/)
      database.exec(removal(2, 4, 'dropped'))
      database.exec('create temp table kept as select * from run')
      expect(() => database.exec('delete from run')).toThrow(/FOREIGN KEY/)
      for (const table of ['inbox', 'event', 'run']) database.exec(`delete from ${table}`)
      expect(() => database.exec('insert into run select * from kept')).toThrow(/does not come back/)
    })
  })

  it('refuses a value of another type', async () => {
    const path = await ledgerFile()
    withRaw(path, (database) => {
      expect(() => database.exec(`update run set epoch = 'many'`)).toThrow(/INTEGER/)
    })
  })

  it.each([
    [`run_id = 'x' and seq >= 5 and seq <= 9 order by seq`, 'event_seq|sqlite_autoindex_event'],
    [`tool_call_id = 'call_1' and run_id = 'x' order by type`, 'event_call'],
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
