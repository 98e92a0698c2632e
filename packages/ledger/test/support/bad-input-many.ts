import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, defineAgent, memoryLedger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { sampleRunId, scriptedModel } from '@tallystick/testkit'
import { verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import { encodeEvent } from '../../src/format/body.ts'
import { genesisHash, sealRun } from '../../src/format/chain.ts'
import { eventColumns, linkEvents } from '../../src/format/event-row.ts'

/** What a question to a ledger of so many runs took, in milliseconds: the best of a few times. */
export interface ManyRunsFigures {
  readonly runs: number
  readonly fileBytes: number
  readonly fillMs: number
  readonly answersMs: Readonly<Record<string, number>>
}

const times = 5
const runsPerCommit = 10_000

/** Fills a file with real rows, chained and sealed, and asks it what must not slow down. Throws where an answer is wrong. */
export async function askManyRuns(runs: number): Promise<ManyRunsFigures> {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-many-'))
  const path = join(folder, 'runs.db')
  try {
    const made = sqliteLedger(path)
    await made.head(sampleRunId(1))
    await made.close()
    const begun = performance.now()
    fill(path, runs, await recordedStart())
    const fillMs = Math.round(performance.now() - begun)
    return { runs, fillMs, fileBytes: statSync(path).size, answersMs: await answers(path, runs) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** How the real runtime begins a run, which then went no further. */
async function recordedStart(): Promise<readonly RuntimeEvent[]> {
  const ledger = memoryLedger()
  const model = scriptedModel([{ text: 'Done.' }])
  const agent = defineAgent({ name: 'agent', instructions: 'Act.', model })
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.')
  await run.result
  return await Array.fromAsync(ledger.read(run.id, { toSeq: 2 }))
}

/** Writes the rows by hand, which takes the rules out of the file for as long. */
function fill(path: string, runs: number, start: readonly RuntimeEvent[]): void {
  const database = new BetterSqlite3(path)
  const rules = database
    .prepare<[], { name: string; sql: string }>(`select name, sql from sqlite_schema where type = 'trigger'`)
    .all()
  for (const { name } of rules) database.exec(`drop trigger ${name}`)
  database.pragma('synchronous = off')
  const writeRun = runWriter(database, start)
  for (let first = 1; first <= runs; first += runsPerCommit) {
    database.transaction(() => {
      for (let ordinal = first; ordinal < first + runsPerCommit && ordinal <= runs; ordinal++)
        writeRun(ordinal)
    })()
  }
  for (const { sql } of rules) database.exec(sql)
  database.close()
}

function runWriter(database: Database, start: readonly RuntimeEvent[]): (ordinal: number) => void {
  const insert = (table: string, columns: readonly string[]) =>
    database.prepare(
      `insert into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`,
    )
  const event = insert('event', eventColumns)
  const run = insert('run', ['run_id', 'pos', 'head_seq', 'head_hash', 'epoch', 'seal'])
  let pos = 0
  return (ordinal) => {
    const runId = sampleRunId(ordinal)
    const encoded = start.map((each) => encodeEvent({ ...each, runId }))
    const rows = linkEvents(genesisHash, encoded)
    const head_hash = rows.at(-1)?.hash ?? genesisHash
    const none = { session_id: null, session_place: null, ended_at: null, history: null }
    const cell = { run_id: runId, pos: pos + 1, head_seq: rows.length, head_hash, epoch: 1, ...none }
    run.run(runId, cell.pos, cell.head_seq, head_hash, 1, sealRun(cell))
    for (const given of rows) {
      const row = { ...given, pos: ++pos, commitment: null }
      event.run(...eventColumns.map((column) => row[column]))
    }
  }
}

/** What every question takes, each asked of a ledger that was just opened. */
async function answers(path: string, runs: number): Promise<Readonly<Record<string, number>>> {
  const middle = sampleRunId(Math.ceil(runs / 2))
  const questions: Readonly<Record<string, (ledger: ReturnType<typeof sqliteLedger>) => Promise<boolean>>> = {
    'open and see a head': async (ledger) => (await ledger.head(middle))?.seq === 2,
    'list 50 runs': async (ledger) => (await Array.fromAsync(ledger.runs({ limit: 50 }))).length === 50,
    'list 50 runs from the middle on': async (ledger) =>
      (await Array.fromAsync(ledger.runs({ before: middle, limit: 50 }))).length === 50,
    'find by a run': async (ledger) => isRun(await Array.fromAsync(ledger.find({ runId: middle })), middle),
    'read a run': async (ledger) => isRun(await Array.fromAsync(ledger.read(middle)), middle),
    'verify a run': async (ledger) => (await verifyRun(ledger, middle)).ok,
  }
  const found: Record<string, number> = {}
  for (const [what, ask] of Object.entries(questions)) {
    let best = Infinity
    for (let time = 0; time < times; time++) {
      const begun = performance.now()
      const ledger = sqliteLedger(path, { readOnly: true })
      const isRight = await ask(ledger)
      best = Math.min(best, performance.now() - begun)
      await ledger.close()
      if (!isRight) throw new Error(`Among ${runs} runs, "${what}" is answered wrongly.`)
    }
    found[what] = Math.round(best * 10) / 10
  }
  return found
}

function isRun(events: readonly RuntimeEvent[], runId: RunId): boolean {
  return (
    events.length === 2 && events.every((event, index) => event.runId === runId && event.seq === index + 1)
  )
}
