// Opens a ledger file and folds one of its runs in this process, and says what that took. Usage: open-large.ts FILE RUN
import { readFileSync } from 'node:fs'
import type { RunId } from '@tallystick/core'
import { foldTo } from '../src/projection/snapshot/fold-to.ts'
import { sqliteLedger } from '../src/sqlite/sqlite-ledger.ts'

/** What it says, as JSON. */
export interface Opened {
  readonly openMs: number
  readonly foldMs: number
  readonly events: number
  /** By system calls, from wherever; absent where the system does not count them. */
  readonly readBytes?: number
  readonly maxBytes: number
}

function readSoFar(): number | undefined {
  try {
    return Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])
  } catch {
    return undefined
  }
}

const [path = '', run = ''] = process.argv.slice(2)
const before = readSoFar()
const begun = performance.now()
const ledger = sqliteLedger(path)
await ledger.head(run as RunId)
const opened = performance.now()
const { seq: events } = await foldTo(ledger, run as RunId)
const folded = performance.now()
const after = readSoFar()
await ledger.close()
const said: Opened = {
  ...{ openMs: opened - begun, foldMs: folded - opened, events },
  ...(before !== undefined && after !== undefined && { readBytes: after - before }),
  maxBytes: process.resourceUsage().maxRSS * 1024,
}
console.log(JSON.stringify(said))
