// A process that works on a ledger file as it is told: a line of JSON on stdin is a member of the ledger and what it is
// given, and the line on stdout what it answered or threw. Usage: writer-child.ts <path> <options as JSON>
import { createInterface } from 'node:readline'
import { sqliteLedger, type SqliteLedgerOptions } from '@tallystick/ledger/sqlite'

const [path = '', options = '{}'] = process.argv.slice(2)
const ledger = sqliteLedger(path, JSON.parse(options) as SqliteLedgerOptions)

const say = (line: unknown): boolean => process.stdout.write(`${JSON.stringify(line ?? null)}\n`)
// Open is what has its tables.
await Array.fromAsync(ledger.runs({ limit: 1 }))
say('open')
for await (const line of createInterface({ input: process.stdin })) {
  const [member, ...given] = JSON.parse(line) as [keyof typeof ledger, ...unknown[]]
  try {
    say(await (ledger[member] as (...args: unknown[]) => unknown)(...given))
  } catch (error) {
    const { code, message } = error as { readonly code: string; readonly message: string }
    say({ code, message })
  }
}
