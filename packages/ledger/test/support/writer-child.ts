// A process that works on ledger files as its parent says: a line of JSON on stdin names a member of the ledger and its
// arguments, and the line on stdout what it answered or threw. `open`, with a path and options, comes before the others
// and after `close`. The process ends with its stdin.
import { flushCompileCache } from 'node:module'
import { createInterface } from 'node:readline'
import type { Ledger } from '@tallystick/core'
import { sqliteLedger, type SqliteLedgerOptions } from '@tallystick/ledger/sqlite'

let ledger: Ledger | undefined

async function open(path: string, options: SqliteLedgerOptions): Promise<'open'> {
  ledger = sqliteLedger(path, options)
  // Open is what has its tables.
  await Array.fromAsync(ledger.runs({ limit: 1 }))
  // Node saves what it compiled when a process exits, which a killed one never does.
  flushCompileCache()
  return 'open'
}

async function answer(member: 'open' | keyof Ledger, given: readonly unknown[]): Promise<unknown> {
  if (member === 'open') return await open(...(given as Parameters<typeof open>))
  if (ledger === undefined) throw new Error('No ledger is open.')
  return await (ledger[member] as (...args: readonly unknown[]) => unknown)(...given)
}

const say = (line: unknown): boolean => process.stdout.write(`${JSON.stringify(line ?? null)}\n`)
for await (const line of createInterface({ input: process.stdin })) {
  const [member, ...given] = JSON.parse(line) as ['open' | keyof Ledger, ...unknown[]]
  try {
    say(await answer(member, given))
  } catch (error) {
    const { code, message } = error as { readonly code: string; readonly message: string }
    say({ code, message })
  }
}
