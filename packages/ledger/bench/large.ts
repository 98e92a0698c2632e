// Makes a ledger file of many events, whose rows are chained as the ledger chains them, and says what opening it and
// folding one of its runs cost in a process of their own. Usage: main.ts large [EVENTS], ten million unless given.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunId } from '@tallystick/core'
import { sampleRunId } from '@tallystick/core/testing'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import { genesisHash, linkHash, rowDigest } from '../src/record/chain.ts'
import type { LinkedRow } from '../src/record/linked-row.ts'
import { RowsInsert } from '../src/sqlite/rows/prepared-query.ts'
import { sqliteLedger } from '../src/sqlite/sqlite-ledger.ts'
import { recordedEvents, rowsOf } from './events.ts'
import type { Opened } from './open-large.ts'

const eventsOfLedger = Number(process.argv[3] ?? 10_000_000)
const rowsAtOnce = 1_024
const columns = [
  ...['pos', 'run_id', 'seq', 'epoch', 'type', 'v', 'turn'],
  ...['tool_call_id', 'at', 'once_key', 'body_commit', 'hash'],
]

interface SchemaObject {
  readonly type: string
  readonly name: string
  readonly sql: string
}

/** Drops the rules and indexes that can be made afterwards, and makes them as they were once the rows are in. */
function unguarded(database: Database, work: () => void): void {
  const found = database
    .prepare<[], SchemaObject>(
      `select type, name, sql from sqlite_schema where type in ('trigger', 'index') and sql is not null
         and tbl_name in ('event', 'payload')`,
    )
    .all()
  for (const { type, name } of found) database.exec(`drop ${type} ${name}`)
  work()
  for (const { sql } of found) database.exec(sql)
}

/** A run whose rows say what those of another do, under an id and in a chain of its own. */
function fillRun(database: Database, rows: readonly LinkedRow[], ordinal: number, firstPos: number): void {
  const [events, payloads] = inserts(database)
  const runId: RunId = sampleRunId(ordinal)
  let hash = genesisHash
  let pos = firstPos
  for (let start = 0; start < rows.length; start += rowsAtOnce) {
    const [eventValues, payloadValues]: [unknown[], unknown[]] = [[], []]
    for (const { envelope, onceKey = null, salt, body, bodyCommit } of rows.slice(
      start,
      start + rowsAtOnce,
    )) {
      const { seq, epoch, type, v, turn, toolCallId = null, at } = envelope
      hash = linkHash(hash, { ...envelope, runId }, bodyCommit)
      eventValues.push(pos, runId, seq, epoch, type, v, turn, toolCallId, at, onceKey, bodyCommit, hash)
      payloadValues.push(pos, salt, body)
      pos++
    }
    events.run(eventValues)
    payloads.run(payloadValues)
  }
  const cell = { runId, pos: firstPos, headSeq: rows.length, headHash: hash, epoch: 1 }
  database
    .prepare('insert into run (run_id, pos, head_seq, head_hash, epoch, seal) values (?, ?, ?, ?, ?, ?)')
    .run(runId, firstPos, rows.length, hash, 1, rowDigest(cell))
}

let prepared: readonly [RowsInsert, RowsInsert] | undefined

function inserts(database: Database): readonly [RowsInsert, RowsInsert] {
  prepared ??= [
    new RowsInsert(database, 'event', columns),
    new RowsInsert(database, 'payload', ['pos', 'salt', 'body']),
  ]
  return prepared
}

async function fill(path: string): Promise<number> {
  const made = sqliteLedger(path)
  await made.head(sampleRunId(1))
  await made.close()
  const rows = rowsOf(await recordedEvents(8_192))
  const runs = Math.max(1, Math.round(eventsOfLedger / rows.length))
  const database = new BetterSqlite3(path)
  // What is lost with the machine is made again.
  for (const setting of ['journal_mode = off', 'synchronous = off', 'cache_size = -262144'])
    database.pragma(setting)
  unguarded(database, () => {
    for (let ordinal = 1; ordinal <= runs; ordinal++) {
      const fillOne = (): void => fillRun(database, rows, ordinal, 1 + (ordinal - 1) * rows.length)
      database.transaction(fillOne).immediate()
      showProgress(`${(ordinal * rows.length).toLocaleString('en')} events`)
    }
    showProgress('its indexes')
  })
  database.close()
  showProgress('')
  return runs
}

/** On a terminal, over what it said before. */
function showProgress(what: string): void {
  if (!process.stderr.isTTY) return
  process.stderr.write(`\r\u001B[K${what === '' ? '' : `making ${what} …`}`)
}

const folder = mkdtempSync(join(tmpdir(), 'tallystick-bench-'))
try {
  const path = join(folder, 'large.db')
  const begun = performance.now()
  const runs = await fill(path)
  const seconds = ((performance.now() - begun) / 1000).toFixed(0)
  const gibibytes = (statSync(path).size / 2 ** 30).toFixed(1)
  console.log(`A file of ${gibibytes} GiB was made in ${seconds} s.`)
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, 'open-large.ts'), path, sampleRunId(Math.ceil(runs / 2))],
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`The ledger could not be opened: ${stderr}`)
  const { openMs, foldMs, events, readBytes, maxBytes } = JSON.parse(stdout) as Opened
  const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`
  console.log(`opened in ${openMs.toFixed(1)} ms, up to the head of a run`)
  console.log(`a run of ${events.toLocaleString('en')} events folded in ${foldMs.toFixed(1)} ms`)
  console.log(`${readBytes === undefined ? 'unknown' : mebibytes(readBytes)} read for both`)
  console.log(`at most ${mebibytes(maxBytes)} of memory`)
} finally {
  rmSync(folder, { recursive: true })
}
