// Loaded before a program, with DIE_AT_WRITE in its environment: ends the process with SIGKILL at one of its database
// statements. No handler runs and nothing is flushed, as when the machine runs out of memory. Where it does not die it
// says at its end how many such statements there were, in the last line of stderr.
import { createRequire } from 'node:module'
import { isMainThread } from 'node:worker_threads'

interface Statement {
  readonly source: string
  run: (...values: unknown[]) => unknown
}

/** At which statement to die: the `at`-th (from 1) of those that match `on`, before it is done or after it. */
export interface DeathAtWrite {
  readonly on: string
  readonly at: number
  readonly when: 'before' | 'behind'
}

const require = createRequire(import.meta.url)
const Database = require('better-sqlite3') as new (path: string) => { prepare(sql: string): Statement }
const { on, at, when } = JSON.parse(process.env['DIE_AT_WRITE'] ?? '{}') as DeathAtWrite
const pattern = new RegExp(on, 'i')
const prototype = Object.getPrototypeOf(new Database(':memory:').prepare('SELECT 1')) as Statement
const { run } = prototype
let count = 0

prototype.run = function (this: Statement, ...values: unknown[]): unknown {
  const counts = pattern.test(this.source)
  if (counts) count += 1
  const dies = counts && count === at
  if (dies && when === 'before') process.kill(process.pid, 'SIGKILL')
  const result = run.apply(this, values)
  if (dies) process.kill(process.pid, 'SIGKILL')
  return result
}

if (isMainThread) process.on('exit', () => void process.stderr.write(`counted: ${count}\n`))
