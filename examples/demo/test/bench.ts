import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Ending, ProgramOptions } from './program.ts'
import { runDemo, runTallystick, runTallystickHere } from './program.ts'

/** What the sales database says about October 2026, by queries of the test's own. */
export interface Facts {
  readonly sku: string
  readonly name: string
  readonly units: number
  /** In euros. */
  readonly revenue: number
  /** Units in whole cases. */
  readonly quantity: number
}

/** An order as the book holds it. */
export interface PlacedOrder {
  readonly idempotency_key: string
  readonly sku: string
  readonly quantity: number
}

/** A folder for one ledger of the demo, which goes away with the test. */
export interface Bench extends AsyncDisposable {
  readonly ledgerPath: string
  /** Runs the demo on the ledger. */
  demo(words: readonly string[], options?: ProgramOptions): Promise<Ending>
  /** Runs a verb of the command line on the ledger: in a process of its own where options are given, else in this one. */
  tallystick(verb: string, words?: readonly string[], options?: ProgramOptions): Promise<Ending>
  facts(): Facts
  orders(): readonly PlacedOrder[]
}

/** Makes the folder. */
export async function openBench(): Promise<Bench> {
  const folder = await mkdtemp(join(tmpdir(), 'tallystick-demo-'))
  const ledgerPath = join(folder, 'runs.db')
  const rows = <Row>(file: string, sql: string): Row[] => {
    const database = new Database(join(`${ledgerPath}-files`, file), { readonly: true })
    try {
      return database.prepare<[], Row>(sql).all()
    } finally {
      database.close()
    }
  }
  return {
    ledgerPath,
    demo: (words, options) => runDemo([...words, '--ledger', ledgerPath], options),
    tallystick: (verb, words = [], options) =>
      options === undefined
        ? runTallystickHere([verb, ledgerPath, ...words])
        : runTallystick([verb, ledgerPath, ...words], options),
    orders: () => rows<PlacedOrder>('orders.db', 'SELECT idempotency_key, sku, quantity FROM orders'),
    facts() {
      const [best] = rows<{ sku: string; units: number; cents: number }>(
        'sales.db',
        `SELECT sku, SUM(quantity) AS units, SUM(quantity * unit_price_cents) AS cents FROM sales
         WHERE sold_on LIKE '2026-10-%' GROUP BY sku ORDER BY units DESC LIMIT 1`,
      )
      const { sku = '', units = 0, cents = 0 } = best ?? {}
      const [product] = rows<{ name: string; case_size: number; on_hand: number }>(
        'sales.db',
        `SELECT name, case_size, on_hand FROM products JOIN stock USING (sku) WHERE sku = '${sku}'`,
      )
      const { name = '', case_size: caseSize = 0, on_hand: onHand = 0 } = product ?? {}
      let quantity = 0
      while (quantity + onHand < units * 1.2) quantity += caseSize
      return { sku, name, units, revenue: cents / 100, quantity }
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/** The JSON in the last line of what a program printed. */
export function lastLine(text: string): unknown {
  return JSON.parse(text.trimEnd().split('\n').at(-1) ?? '')
}
