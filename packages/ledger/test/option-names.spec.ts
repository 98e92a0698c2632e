// Names that other libraries have for the same option: the error names ours.
import { memoryLedger } from '@tallystick/core'
import { readLedgerStats, readRunSummaries, verifyCheckpoints, writeCheckpoint } from '@tallystick/ledger'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { temporaryFile } from './support/temporary-folder.ts'

const ledger = memoryLedger()

/** For each place, what is given there under another name, and the other names of each option. */
const places: readonly (readonly [
  place: string,
  give: (name: string) => unknown,
  names: Readonly<Record<string, readonly string[]>>,
])[] = [
  [
    'a ledger in a file',
    (name) => sqliteLedger(temporaryFile(), { [name]: 1 }),
    { busyTimeoutMs: ['timeout'], keys: ['keyring'] },
  ],
  [
    'a ledger on Postgres',
    (name) => postgresLedger({ [name]: 1 }),
    {
      connectionString: ['url', 'connection', 'host'],
      maxConnections: ['max', 'poolSize'],
      keys: ['keyring'],
      readOnly: ['readonly'],
    },
  ],
  [
    'a checkpoint',
    (name) => writeCheckpoint(ledger, { [name]: 1 } as never),
    { key: ['privateKey'], file: ['path'], origin: ['name'] },
  ],
  [
    'a look at checkpoints',
    (name) => verifyCheckpoints(ledger, { [name]: 1 } as never),
    { publicKey: ['key'], file: ['path'], origin: ['name'] },
  ],
  [
    'stats',
    (name) => readLedgerStats(ledger, { [name]: 1 } as never),
    { maxListed: ['limit', 'max'], since: ['from'] },
  ],
  [
    'a list',
    (name) => Array.fromAsync(readRunSummaries(ledger, { [name]: 1 })),
    {
      statuses: ['status', 'standing', 'standings'],
      sessionId: ['session'],
      before: ['after'],
      limit: ['max'],
    },
  ],
]

describe('a name that another library has for an option', () => {
  it.each(places)('of %s is refused with the name that it has here', async (_place, give, names) => {
    for (const [right, others] of Object.entries(names)) {
      for (const name of others) {
        await expect(async () => await give(name)).rejects.toThrow(
          `${name} is not an option. Did you mean ${right}?`,
        )
      }
    }
  })
})
