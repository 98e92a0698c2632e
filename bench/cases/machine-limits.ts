import { createHash } from 'node:crypto'
import { join } from 'node:path'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import { map, range, reduce } from 'rxjs'
import type { Case, Trial } from './case.ts'
import { metered } from './meter.ts'

const event = { type: 'assistant_text_delta', attempt: 1, part: 0, text: 'w001 ', at: 1_700_000_000_000 }
const line = JSON.stringify(event)
const block = Buffer.alloc(200, 'x')

/** The work of a ledger at the speed of the machine itself, by the name of the subject. */
const works: Readonly<Record<string, (trial: Trial, times: number) => () => unknown>> = {
  'sqlite-inserts': (trial, times) => {
    const { insert, database } = tableIn(trial)
    return () =>
      database.transaction(() => {
        for (let index = 0; index < times; index++) insert.run(line)
      })()
  },
  'synced-commits': (trial, times) => {
    const { insert } = tableIn(trial)
    return () => {
      for (let index = 0; index < times; index++) insert.run(line)
    }
  },
  'json-both-ways': (_, times) => () => {
    let length = 0
    for (let index = 0; index < times; index++) length += JSON.stringify(JSON.parse(line)).length
    return length === times * line.length
  },
  'sha-256': (_, times) => () => {
    for (let index = 0; index < times; index++) createHash('sha256').update(block).digest()
  },
  'rxjs-map': (_, times) => () =>
    range(times)
      .pipe(
        map((index) => index + 1),
        reduce((sum, index) => sum + index),
      )
      .subscribe(),
}

export const machineLimits: Case = {
  name: 'machine-limits',
  what: 'What this machine can do of the work that a ledger consists of, without a ledger: one thing at a time.',
  isComparison: false,
  unit: 'operation',
  params: [{ times: 20_000 }],
  smokeParams: [{ times: 20 }],
  own: [],
  floors: Object.keys(works),
  peers: [],
  async measure(trial) {
    const { times = 0 } = trial.params
    // A disk syncs a few hundred times a second.
    const count = trial.subject === 'synced-commits' ? Math.ceil(times / 50) : times
    const work = works[trial.subject]?.(trial, count)
    if (work === undefined) throw new Error(`There is no work called ${trial.subject}.`)
    if (trial.subject !== 'synced-commits') work()
    const { value, ...took } = await metered(work)
    if (value === false) throw new Error('The work came out wrong.')
    return { units: count, ...took }
  },
}

function tableIn(trial: Trial): { readonly database: Database; readonly insert: BetterSqlite3.Statement } {
  const database = new BetterSqlite3(join(trial.folder, 'raw.db'))
  database.pragma('journal_mode = wal')
  database.pragma('synchronous = full')
  database.exec('create table event (pos integer primary key, body text not null) strict')
  return { database, insert: database.prepare('insert into event (body) values (?)') }
}
