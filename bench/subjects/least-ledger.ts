import { createHash, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { instructions, look, question, toolName, usage, type Script, type Seen } from './script.ts'
import { replies, type Subject } from './subject.ts'

/** Deltas that are shown together: they are one row, which is written before they are shown. */
const deltasARow = 256

type Fact = Readonly<Record<string, unknown>>

/**
 * The least code that keeps what Tallystick keeps: a loop without a state machine, laws, limits or commands, which writes every
 * event as JSON in a chain of hashes to SQLite before it is shown, with the synced commits that Tallystick makes. What Tallystick
 * takes beyond that is what it does beyond that.
 */
export const leastLedger: Subject = {
  async open(script, { folder }) {
    const log = openLog(join(folder, 'least.db'))
    const { next } = replies(script)
    return {
      run: () => playRun(script, next, log),
      async close() {
        log.close()
      },
    }
  },
}

async function playRun(
  script: Script,
  next: ReturnType<typeof replies>['next'],
  log: ReturnType<typeof openLog>,
): Promise<Seen> {
  const seen = { text: '', replies: 0, results: 0 }
  const run = log.begin()
  const kept: Fact[] = [
    { type: 'run_started', instructions },
    { type: 'input_received', text: question },
  ]
  for (let turn = 1; ; turn++) {
    kept.push({ type: 'model_call_started', turn })
    await run.append(kept.splice(0), 'synced')
    const { deltas, calls } = next()
    kept.push({ type: 'assistant_started', turn })
    for (let from = 0; from < deltas.length; from += deltasARow) {
      const shown = deltas.slice(from, from + deltasARow)
      for (let index = 0; index < shown.length; index++) await Promise.resolve()
      kept.push({ type: 'assistant_text_delta', turn, texts: shown })
      if (deltas.length > deltasARow) await run.append(kept.splice(0), 'written')
      for (const text of shown) seen.text += text
    }
    const text = deltas.join('')
    for (const call of calls) {
      kept.push({ type: 'tool_input_delta', turn, text: JSON.stringify(call.input) })
      kept.push({ type: 'tool_request_ready', turn, name: toolName, call })
    }
    kept.push({ type: 'usage_updated', turn, usage })
    kept.push({ type: 'assistant_message_finished', turn, text, calls })
    seen.replies++
    if (calls.length === 0) break
    kept.push({ type: 'tool_requests_collected', turn, calls: calls.map(({ id }) => id) })
    for (const { id } of calls) kept.push({ type: 'tool_started', turn, id, at: Date.now() })
    // The tool only reads.
    await run.append(kept.splice(0), 'written')
    await Promise.all(
      calls.map(async ({ id, input }) => {
        const content = await look(script, input)
        kept.push({ type: 'tool_result', turn, id, content })
        seen.results++
      }),
    )
    kept.push({ type: 'tool_results_injected', turn })
  }
  kept.push({ type: 'run_finished', reason: 'answered' })
  await run.append(kept.splice(0), 'synced')
  return seen
}

interface Write {
  readonly rows: readonly (readonly [run: string, seq: number, body: string, link: Buffer])[]
  readonly isSynced: boolean
  readonly resolve: () => void
}

/** An append-only table. Writes of one turn of the event loop share a commit. */
function openLog(path: string) {
  const database = new BetterSqlite3(path)
  database.pragma('journal_mode = wal')
  database.exec(
    'create table event (pos integer primary key, run text not null, seq integer not null, body text not null, link blob not null, unique (run, seq)) strict',
  )
  const insert = database.prepare('insert into event (run, seq, body, link) values (?, ?, ?, ?)')
  let waiting: Write[] = []
  let isSyncing: boolean | undefined
  const commit = (): void => {
    const writes = waiting
    waiting = []
    const isSynced = writes.some((write) => write.isSynced)
    if (isSynced !== isSyncing) database.exec(`pragma synchronous = ${isSynced ? 'full' : 'normal'}`)
    isSyncing = isSynced
    database.transaction(() => {
      for (const { rows } of writes) for (const row of rows) insert.run(...row)
    })()
    for (const { resolve } of writes) resolve()
  }
  return {
    begin() {
      const run = randomUUID()
      let [seq, link] = [0, Buffer.alloc(32)]
      return {
        async append(facts: readonly Fact[], durability: 'synced' | 'written'): Promise<void> {
          const rows = facts.map((fact): Write['rows'][number] => {
            const body = JSON.stringify({ at: Date.now(), ...fact })
            link = createHash('sha256').update(link).update(body).digest()
            return [run, ++seq, body, link]
          })
          await new Promise<void>((resolve) => {
            if (waiting.length === 0) setImmediate(commit)
            waiting.push({ rows, isSynced: durability === 'synced', resolve })
          })
        },
      }
    },
    close: () => database.close(),
  }
}
