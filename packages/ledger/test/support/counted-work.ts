import crypto from 'node:crypto'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Ledger, RuntimeEvent } from '@tallystick/core'
import BetterSqlite3, { type Statement } from 'better-sqlite3'
import { onTestFinished } from 'vitest'

/** How often each kind of work was done. */
export type Work = Readonly<Record<string, number>>

/** Counts work by its kind. */
export class Tally {
  readonly #counts = new Map<string, number>()

  add(kind: string, count = 1): void {
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + count)
  }

  get counts(): Work {
    return Object.fromEntries(this.#counts)
  }
}

/** What was done between two counts, without what was not done. */
export function difference(before: Work, after: Work): Work {
  const kinds = Object.keys(after).sort()
  return Object.fromEntries(
    kinds.map((kind) => [kind, (after[kind] ?? 0) - (before[kind] ?? 0)]).filter(([, count]) => count !== 0),
  )
}

/** A ledger whose appends and events are counted; `before` is called with the events of each append before it begins. */
export function countAppends(
  ledger: Ledger,
  tally: Tally,
  before: (events: readonly RuntimeEvent[]) => void,
): Ledger {
  return {
    ...ledger,
    append(runId, expected, events, options) {
      before(events)
      tally.add(`append, ${options.durability}`)
      tally.add('event', events.length)
      return ledger.append(runId, expected, events, options)
    },
  }
}

/** Counts every statement that better-sqlite3 runs in this process until the test ends, and which commits are synced. */
export function countStatements(tally: Tally): void {
  const database = new BetterSqlite3(':memory:')
  const prototype = Object.getPrototypeOf(database.prepare('select 1')) as Statement
  database.close()
  /** Databases whose commits are not synced: that of the ledger, from time to time, and that of its writer's lock. */
  const unsynced = new Set<unknown>()
  const count = (source: string, of: Pick<BetterSqlite3.Database, 'inTransaction'>): void => {
    const kind = kindOf(source)
    const isSynced = !unsynced.has(of)
    if (kind === 'pragma synchronous') {
      if (source.endsWith('= full')) unsynced.delete(of)
      else unsynced.add(of)
    }
    // Outside of transactions, timers of the wall clock read pragmas, which look for other processes.
    if (!kind.startsWith('pragma') || kind === 'pragma synchronous' || of.inTransaction)
      tally.add(kind === 'commit' ? `commit, ${isSynced ? 'synced' : 'unsynced'}` : kind)
  }
  for (const method of ['run', 'get', 'all', 'iterate'] as const) {
    const original = prototype[method] as (this: Statement, ...values: unknown[]) => unknown
    replace(prototype, method, function (this: Statement, ...values: unknown[]): unknown {
      count(this.source, this.database)
      return original.apply(this, values)
    })
  }
  const { exec } = BetterSqlite3.prototype as unknown as Pick<BetterSqlite3.Database, 'exec'>
  replace(BetterSqlite3.prototype, 'exec', function (this: BetterSqlite3.Database, text: string) {
    count(text, this)
    return exec.call(this, text)
  })
}

/** Counts every statement that better-sqlite3 prepares in this process until the test ends. */
export function countPreparations(tally: Tally): void {
  const { prepare } = BetterSqlite3.prototype as unknown as Pick<BetterSqlite3.Database, 'prepare'>
  replace(BetterSqlite3.prototype, 'prepare', function (this: BetterSqlite3.Database, text: string) {
    tally.add('prepare')
    return prepare.call(this, text)
  })
}

/** The verb of a statement, and the table that it names first. */
function kindOf(source: string): string {
  const text = source.trim().toLowerCase().replaceAll('"', '')
  const [verb = ''] = text.split(/\s/, 1)
  if (verb === 'pragma') return text.startsWith('pragma synchronous =') ? 'pragma synchronous' : text
  if (text === 'select total_changes()') return text
  const table = /\b(?:from|into|update) (\w+)/.exec(text)?.[1]
  return table === undefined ? verb : `${verb} ${table}`
}

/**
 * Counts every SHA-256 until the test ends: those of Node, of which an HMAC takes two, and those that core computes with a
 * library as long as no ledger of this package was opened.
 */
export async function countHashes(tally: Tally): Promise<void> {
  // Hooks run in the reverse of their order: this one runs after those of `replace`.
  onTestFinished(() => syncBuiltinESMExports())
  for (const name of ['hash', 'createHash', 'createHmac'] as const) {
    const original = crypto[name] as (algorithm: string, ...rest: unknown[]) => unknown
    replace(crypto, name, (algorithm: string, ...rest: unknown[]): unknown => {
      if (algorithm === 'sha256') tally.add('hash, of Node', name === 'createHmac' ? 2 : 1)
      return original(algorithm, ...rest)
    })
  }
  syncBuiltinESMExports()
  const prototype = await prototypeOfCoreHash()
  const { digestInto } = prototype
  replace(prototype, 'digestInto', function (this: CoreHash, out: Uint8Array): void {
    tally.add('hash, of core')
    digestInto.call(this, out)
  })
}

/** Puts a function in the place of a method until the test ends. A spy would keep every call. */
function replace(owner: object, method: string, replacement: (...values: never[]) => unknown): void {
  const original = Object.getOwnPropertyDescriptor(owner, method) as PropertyDescriptor
  Object.defineProperty(owner, method, { ...original, value: replacement })
  onTestFinished(() => void Object.defineProperty(owner, method, original))
}

/** A hash in work, as the library of core has it. */
interface CoreHash {
  readonly digestInto: (this: CoreHash, out: Uint8Array) => void
}

async function prototypeOfCoreHash(): Promise<CoreHash> {
  const ofCore = createRequire(join(import.meta.dirname, '../../../core/package.json'))
  const path = ofCore.resolve('@noble/hashes/sha2.js')
  const { sha256 } = (await import(pathToFileURL(path).href)) as { sha256: { create(): CoreHash } }
  let prototype = sha256.create()
  while (!Object.hasOwn(prototype, 'digestInto')) prototype = Object.getPrototypeOf(prototype) as CoreHash
  return prototype
}
