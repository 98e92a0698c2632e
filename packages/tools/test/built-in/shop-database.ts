import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

interface Writable {
  exec(sql: string): void
  close(): void
}
const Database = createRequire(import.meta.url)('better-sqlite3') as new (path: string) => Writable

/** Opens a SQLite file to write. */
export function openToWrite(path: string): Writable {
  return new Database(path)
}

/** A SQLite file with some tables, in a folder of its own. */
export interface ShopDatabase {
  readonly folder: string
  readonly path: string
  /** Deletes the folder. */
  remove(): void
}

/** Makes the database that the tests query. */
export function createShopDatabase(): ShopDatabase {
  const folder = mkdtempSync(join(tmpdir(), 'sql-query-'))
  const path = join(folder, 'shop.db')
  const database = openToWrite(path)
  database.exec(`
    CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, photo BLOB);
    INSERT INTO items VALUES (1, 'tent', 189.5, x'00ff10'), (2, 'stöve', NULL, NULL), (3, 'lamp', 9e999, NULL);
    CREATE TABLE ledger (amount INTEGER);
    INSERT INTO ledger VALUES (9007199254740991), (9007199254740993), (-9223372036854775808);
    CREATE TABLE many (n INTEGER);
    INSERT INTO many WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 1000) SELECT x FROM c;
    CREATE VIEW names AS SELECT name FROM items;
    CREATE VIEW broken AS SELECT gone FROM items;
  `)
  database.close()
  return { folder, path, remove: () => rmSync(folder, { recursive: true }) }
}
