import type { Clock, RunId, RuntimeEvent } from '@tallystick/core'
import type { AppendOptions, ExpectedHead, Head } from '@tallystick/core/vocabulary'
import type { Database } from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import { encodeEvent } from '../../src/format/body.ts'
import { openDatabase } from '../../src/sqlite/open-database.ts'
import type { SqliteLedgerOptions } from '../../src/sqlite/open-database.ts'
import { SqliteStore } from '../../src/sqlite/sqlite-store.ts'
import { temporaryFile } from './temporary-folder.ts'

/** The store of a ledger file, and the connection that it has. */
export interface OpenStore {
  readonly path: string
  readonly database: Database
  readonly store: SqliteStore
  readonly append: (
    runId: RunId,
    expected: ExpectedHead,
    events: readonly RuntimeEvent[],
    options: AppendOptions,
  ) => Promise<Head>
}

/** Opens the store of a file, which is closed after the test. */
export function openStore(
  path: string = temporaryFile(),
  options: SqliteLedgerOptions = {},
  clock?: Pick<Clock, 'now' | 'schedule'>,
): OpenStore {
  const opened = openDatabase(path, options)
  const store = new SqliteStore(opened, options, clock)
  onTestFinished(() => store.close().catch(() => undefined))
  return {
    path,
    database: opened.database,
    store,
    append: (runId, expected, events, { durability, consumedInboxKeys: takes = [] }) =>
      store.append({
        ...{ runId, expected, durability, takes, isSealed: false },
        events: events.map((event) => encodeEvent(event)),
      }),
  }
}
