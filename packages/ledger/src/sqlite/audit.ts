import type { Database } from 'better-sqlite3'
import { createFault, type Fault } from '../format/event-row.ts'
import { openSqlite } from './open-database.ts'
import { isDerived, makeSchema } from './schema.ts'

/** The first fault of a file: its pages, its numbering, its references, its schema. */
export function findFileFault(database: Database): Fault | undefined {
  return database.transaction(
    () => findPageFault(database) ?? findNumberingFault(database) ?? findSchemaFault(database),
  )()
}

function findPageFault(database: Database): Fault | undefined {
  const [first] = database.pragma('integrity_check(1)') as readonly { integrity_check: string }[]
  const found = first?.integrity_check ?? 'no answer'
  if (found !== 'ok') return createFault('pages', 'ok', found)
  const [stray] = database.pragma('foreign_key_check') as readonly { table: string; parent: string }[]
  return stray && createFault(`${stray.table} rows`, `each with its ${stray.parent}`, 'one without')
}

/** Places are given without gaps and never again, so what was removed leaves a hole. */
function findNumberingFault(database: Database): Fault | undefined {
  const count = (text: string, ...values: readonly number[]): number =>
    database
      .prepare<unknown[], number>(text)
      .pluck()
      .get(...values) ?? 0
  const given = count(`select seq from sqlite_sequence where name = 'event'`)
  const due = given - count(`select coalesce(sum(seq), 0) from removal where kind = 'dropped'`)
  const all = count('select count(*) from event')
  if (all !== due) return createFault('event rows', due, all)
  const placed = count('select count(*) from event where pos between 1 and ?', given)
  return placed === due ? undefined : createFault('event rows within the places given', due, placed)
}

/** Tables, indexes and triggers that are not as they were made: without them nothing is append-only. */
function findSchemaFault(database: Database): Fault | undefined {
  const due = makeDueSchema()
  const present = listObjects(database)
  for (const [name, text] of due) {
    const found = present.get(name)
    if (isDerived(name) || found === text) continue
    return createFault(name, 'as format 1 has it', found === undefined ? 'missing' : 'another')
  }
  const added = [...present.keys()].find((name) => name.startsWith('trigger') && !due.has(name))
  return added === undefined ? undefined : createFault(added, 'no such trigger', 'one that was added')
}

/** The schema of a file that holds nothing else. */
function makeDueSchema(): ReadonlyMap<string, string> {
  const database = openSqlite(':memory:')
  try {
    makeSchema(database)
    return listObjects(database)
  } finally {
    database.close()
  }
}

function listObjects(database: Database): ReadonlyMap<string, string> {
  const objects = database
    .prepare<[], { type: string; name: string; sql: string }>(
      'select type, name, sql from sqlite_schema where sql is not null',
    )
    .all()
  return new Map(objects.map(({ type, name, sql }) => [`${type} ${name}`, sql]))
}
