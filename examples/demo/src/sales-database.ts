import Database from 'better-sqlite3'

/** The day on which the shop's books were last closed. "Last month" is the month before it: October 2026. */
const businessDate = '2026-11-02'

/** The agent's instructions about the tables: everything that it knows of the data. */
export const salesSchema = `CREATE TABLE shop (name TEXT, currency TEXT, business_date TEXT);
CREATE TABLE products (sku TEXT PRIMARY KEY, name TEXT, unit_price_cents INTEGER, case_size INTEGER);
CREATE TABLE stock (sku TEXT PRIMARY KEY REFERENCES products, on_hand INTEGER);
CREATE TABLE sales (sale_id INTEGER PRIMARY KEY, sold_on TEXT, sku TEXT REFERENCES products, quantity INTEGER, unit_price_cents INTEGER);`

interface Product {
  readonly sku: string
  readonly name: string
  readonly unitPriceCents: number
  readonly caseSize: number
  readonly onHand: number
  /** Units sold on an ordinary day in August, September, October and November. */
  readonly dailyUnits: readonly [number, number, number, number]
}

// The best seller overall, the product with the highest revenue, and October's best seller are three different products,
// so that a wrong query shows in the answer.
const products: readonly Product[] = [
  {
    sku: 'TENT-2P',
    name: 'Two-person tent',
    unitPriceCents: 18900,
    caseSize: 4,
    onHand: 31,
    dailyUnits: [9, 6, 4, 2],
  },
  {
    sku: 'STOVE-G1',
    name: 'Gas stove',
    unitPriceCents: 4450,
    caseSize: 10,
    onHand: 66,
    dailyUnits: [8, 7, 6, 5],
  },
  {
    sku: 'BOTTLE-1L',
    name: 'Steel bottle, 1 l',
    unitPriceCents: 2190,
    caseSize: 24,
    onHand: 210,
    dailyUnits: [26, 19, 9, 5],
  },
  {
    sku: 'LAMP-HD3',
    name: 'Head lamp',
    unitPriceCents: 3275,
    caseSize: 12,
    onHand: 95,
    dailyUnits: [4, 8, 17, 20],
  },
  {
    sku: 'SOCK-WOOL',
    name: 'Wool socks',
    unitPriceCents: 1590,
    caseSize: 30,
    onHand: 340,
    dailyUnits: [3, 7, 13, 16],
  },
  {
    sku: 'PACK-45',
    name: 'Backpack, 45 l',
    unitPriceCents: 12950,
    caseSize: 6,
    onHand: 28,
    dailyUnits: [6, 5, 5, 3],
  },
]

const firstDay = Date.UTC(2026, 7, 1)
const dayMs = 86_400_000

/**
 * Makes the shop's sales database in `file` unless it exists. It is one transaction: a process that dies leaves nothing, and
 * a second one finds it done. The rows are the same each time.
 */
export function createSalesDatabase(file: string): void {
  const database = new Database(file, { timeout: 10_000 })
  try {
    database.transaction(() => fill(database)).immediate()
  } finally {
    database.close()
  }
}

function fill(database: Database.Database): void {
  const made = database.prepare(`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'shop'`).get()
  if (made !== undefined) return
  database.exec(salesSchema)
  database.prepare('INSERT INTO shop VALUES (?, ?, ?)').run('Ridge & Tarn Outfitters', 'EUR', businessDate)
  const product = database.prepare('INSERT INTO products VALUES (?, ?, ?, ?)')
  const stock = database.prepare('INSERT INTO stock VALUES (?, ?)')
  for (const { sku, name, unitPriceCents, caseSize, onHand } of products) {
    product.run(sku, name, unitPriceCents, caseSize)
    stock.run(sku, onHand)
  }
  const sale = database.prepare(
    'INSERT INTO sales (sold_on, sku, quantity, unit_price_cents) VALUES (?, ?, ?, ?)',
  )
  const swing = sequence(20261102)
  for (let at = firstDay; at <= Date.parse(businessDate); at += dayMs) {
    const day = new Date(at)
    for (const { sku, unitPriceCents, dailyUnits } of products) {
      const ordinary = dailyUnits[day.getUTCMonth() - 7] ?? 0
      const quantity = Math.max(0, ordinary + (swing() % 5) - 2)
      if (quantity > 0) sale.run(day.toISOString().slice(0, 10), sku, quantity, unitPriceCents)
    }
  }
}

/** A fixed sequence of integers from a seed (Park and Miller's generator), so that the data never changes. */
function sequence(seed: number): () => number {
  let value = seed
  return () => (value = (value * 48271) % 2147483647)
}
