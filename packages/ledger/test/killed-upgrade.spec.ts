// What a process leaves that is killed while it brings a ledger of an older release to the newest schema.
import { copyFileSync, existsSync } from 'node:fs'
import { exportEvents, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { auditSourceOf } from '../src/record/audit-source.ts'
import { schemaVersion } from '../src/sqlite/schema/migrate.ts'
import { effort } from '../../../scripts/testing/effort.ts'
import { killedAt, spread, workDone } from './support/signalled-process.ts'
import { writeOlderLedger } from './support/older-ledger.ts'
import { filesBeside, withRaw } from './support/raw-database.ts'
import { recorded } from './support/recorded.ts'
import { temporaryFile } from './support/temporary-folder.ts'

/** The events of a ledger, as export prints them. */
async function lines(path: string): Promise<readonly string[]> {
  const ledger = sqliteLedger(path, { readOnly: true })
  try {
    return await Array.fromAsync(exportEvents(ledger))
  } finally {
    await ledger.close()
  }
}

/** The version of the schema, read by a connection that changes nothing. */
function versionOf(path: string): number {
  const database = new BetterSqlite3(path, { readonly: existsSync(`${path}-wal`) })
  const version = database.pragma('user_version', { simple: true }) as number
  database.close()
  return version
}

/** What a ledger is and holds, once a process has opened it to write. */
async function opened(path: string): Promise<unknown> {
  const ledger = sqliteLedger(path)
  const verdicts = await Array.fromAsync(verifyLedger(ledger), ({ ok }) => ok)
  const fault = await auditSourceOf(ledger)?.fault()
  await ledger.close()
  return { verdicts, fault, schema: schemaOf(path), version: versionOf(path), lines: await lines(path) }
}

function schemaOf(path: string): readonly string[] {
  const query = 'select sql from sqlite_schema where sql is not null order by type, name'
  return withRaw(path, (database) => database.prepare<[], string>(query).pluck().all())
}

/** What a reader finds at the path: the events, or why it is refused. The file and its log stay as they are. */
async function readOnly(path: string): Promise<readonly string[] | string> {
  const kept = existsSync(`${path}-wal`) ? ['runs.db', 'runs.db-wal'] : ['runs.db']
  const before = filesBeside(path, kept)
  const found = await lines(path).catch(String)
  expect(filesBeside(path, kept)).toEqual(before)
  return found
}

describe.each(effort({ quick: [1], thorough: [1, 3, 6, schemaVersion - 1] }))(
  'an upgrade from schema version %d that is killed',
  (version) => {
    it('leaves the old schema or the new one, every event, and a file that the next process upgrades', async () => {
      const { path: newest } = await recorded()
      const older = temporaryFile()
      await writeOlderLedger(older, version, newest)
      const sound = {
        verdicts: [true, true, true],
        fault: undefined,
        schema: schemaOf(newest),
        version: schemaVersion,
        lines: await lines(newest),
      }
      const whole = temporaryFile()
      copyFileSync(older, whole)
      const { executed } = workDone({ task: 'upgrade', path: whole })
      expect(await opened(whole)).toEqual(sound)

      const left: number[] = []
      for (const statement of spread(executed, effort({ quick: 2, thorough: 10 }))) {
        const path = temporaryFile()
        copyFileSync(older, path)
        expect(killedAt({ task: 'upgrade', path }, statement)).toBe(true)
        const found = versionOf(path)
        left.push(found)
        const refused = expect.stringContaining(
          `older schema version ${version}, and readOnly upgrades nothing`,
        ) as unknown
        expect(await readOnly(path)).toEqual(found === schemaVersion ? sound.lines : refused)
        // A second process is killed at the same place, and a third one is not.
        killedAt({ task: 'upgrade', path }, statement)
        expect([statement, await opened(path)]).toEqual([statement, sound])
      }
      expect(new Set(left)).toEqual(new Set([version, schemaVersion]))
    })
  },
)
