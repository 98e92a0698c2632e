// A process that works on a ledger file until a signal: with SIGKILL, it is killed as by a crash before a
// statement of SQLite is executed; with SIGSTOP, it stands still, to be stopped, before a transaction begins. Usage: signalled-child.ts <task> <path>
// <signal> <number> <run id>. The number is that of the statement, or the transaction, from the opening on. The process says on
// stdout when it stops, and at its end how many there were.
import { writeSync } from 'node:fs'
import type { RunId } from '@tallystick/core'
import { redact } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3, { type Statement } from 'better-sqlite3'
import { standStill } from './stopped-process.ts'

const [task = '', path = '', signal = '', last = '', runId = ''] = process.argv.slice(2)

function say(what: unknown): void {
  writeSync(1, `${JSON.stringify(what)}\n`)
}

let executed = 0
function count(source: string): void {
  if (signal === 'SIGSTOP' && !source.startsWith('begin')) return
  if (++executed !== Number(last)) return
  if (signal === 'SIGKILL') process.kill(process.pid, signal)
  say('stopped')
  standStill()
}

/** Has a method counted before each call. */
function counting(owner: object, method: string, sourceOf: (self: never, text: string) => string): void {
  const methods = owner as Record<string, (...values: unknown[]) => unknown>
  const original = methods[method] as (...values: unknown[]) => unknown
  methods[method] = function (this: never, ...values: unknown[]): unknown {
    count(sourceOf(this, String(values[0])))
    return original.apply(this, values)
  }
}

const database = new BetterSqlite3(':memory:')
const statements = Object.getPrototypeOf(database.prepare('select 1')) as object
database.close()
for (const method of ['run', 'get', 'all', 'iterate']) {
  counting(statements, method, ({ source }: Statement) => source)
}
counting(BetterSqlite3.prototype, 'exec', (_database, text) => text)

const tasks: Readonly<Record<string, () => Promise<unknown>>> = {
  /** Brings the file to the newest schema. */
  async upgrade() {
    const ledger = sqliteLedger(path)
    await ledger.head(runId as RunId)
    await ledger.close()
  },
  /** Takes away what was said in a run. */
  async redact() {
    const ledger = sqliteLedger(path)
    const removed = await redact(ledger, runId as RunId, 'all', { by: 'ada', reason: 'asked for' })
    await ledger.close()
    return removed
  },
}

const done = await tasks[task]?.()
say({ executed, done })
