import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'

/** The size of the SQLite databases of the measured subject, in KiB, with what is still in their logs. */
export function storedKiB(folder: string): number {
  const measured = join(folder, 'measured')
  const files = readdirSync(measured).filter((name) => name.endsWith('.db'))
  return files.reduce((sum, name) => {
    const database = new BetterSqlite3(join(measured, name), { readonly: true })
    const [pages, size] = ['page_count', 'page_size'].map((pragma) =>
      Number(database.pragma(pragma, { simple: true })),
    )
    database.close()
    return sum + ((pages ?? 0) * (size ?? 0)) / 1024
  }, 0)
}
