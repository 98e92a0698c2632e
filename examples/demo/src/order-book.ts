import Database from 'better-sqlite3'

/** An order in the book. */
export interface Order {
  readonly orderId: number
  readonly sku: string
  readonly quantity: number
}

/** Where orders are placed: a separate database, which outlives the agent's process. */
export interface OrderBook {
  /** Places an order, or returns the one that this key placed before. Durable when it returns. */
  place(idempotencyKey: string, order: { readonly sku: string; readonly quantity: number }): Order
  /** Returns the order that this key placed, if any. */
  find(idempotencyKey: string): Order | undefined
  close(): void
}

/** Opens the order book in `file`, and creates it if it is missing. */
export function openOrderBook(file: string): OrderBook {
  const database = new Database(file, { timeout: 10_000 })
  database.pragma('synchronous = FULL')
  database.exec(
    `CREATE TABLE IF NOT EXISTS orders (
       order_id INTEGER PRIMARY KEY,
       idempotency_key TEXT NOT NULL UNIQUE,
       sku TEXT NOT NULL,
       quantity INTEGER NOT NULL CHECK (quantity > 0)
     ) STRICT`,
  )
  const insert = database.prepare(
    'INSERT INTO orders (idempotency_key, sku, quantity) VALUES (?, ?, ?) ON CONFLICT (idempotency_key) DO NOTHING',
  )
  const select = database.prepare<[string], Order>(
    'SELECT order_id AS orderId, sku, quantity FROM orders WHERE idempotency_key = ?',
  )
  const find = (idempotencyKey: string): Order | undefined => select.get(idempotencyKey)
  return {
    find,
    place(idempotencyKey, { sku, quantity }) {
      insert.run(idempotencyKey, sku, quantity)
      const order = find(idempotencyKey)
      if (order === undefined) throw new Error('The order book did not keep the order.')
      return order
    },
    close: () => void database.close(),
  }
}
