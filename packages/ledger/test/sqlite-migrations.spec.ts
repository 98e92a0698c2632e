import { createHash } from 'node:crypto'
import { LedgerUnavailableError } from '@tallystick/core'
import { exportEvents, ledgerStats, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { schemaVersion } from '../src/sqlite/schema/migrate.ts'
import { writeOlderLedger } from './support/older-ledger.ts'
import { filesBeside, withRaw } from './support/raw-database.ts'
import { recorded } from './support/recorded.ts'
import { recordRun } from './support/record-run.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const olderVersions = Array.from({ length: schemaVersion - 1 }, (_, index) => index + 1)

/** The events of a ledger, as export prints them. */
async function lines(path: string): Promise<readonly string[]> {
  const ledger = sqliteLedger(path, { readOnly: true })
  const events = await Array.fromAsync(exportEvents(ledger))
  await ledger.close()
  return events
}

/** What each schema that was released comes to, by its version: a step that was released is never edited. */
const released: Readonly<Record<number, string>> = {
  1: '8f827f7f124e04c8',
  2: '9a589eb13c0a0642',
  3: '7b11d59fdbd4e185',
  4: 'ca8d4c6b707604a4',
  5: '3f666417dca2a84c',
  6: '8945b7310289a5f6',
  7: 'f67aed86b7b48fd5',
  8: '78cf1416f6dd34c8',
  9: '34731e60b8631bd5',
}

/** A digest of a schema, without the tables of what migrates. */
function digestOf(schema: readonly string[]): string {
  const own = schema.filter((statement) => !statement.includes('schema_migration'))
  return createHash('sha256').update(own.join(';\n')).digest('hex').slice(0, 16)
}

function schemaOf(path: string): readonly string[] {
  const query = `select sql from sqlite_schema where sql is not null order by type, name`
  return withRaw(path, (database) => database.prepare<[], { sql: string }>(query).all()).map(({ sql }) => sql)
}

it('a ledger file whose projections were taken away is brought up to date, too', async () => {
  const { path: newest } = await recorded()
  const path = temporaryFile()
  await writeOlderLedger(path, 9, newest)
  withRaw(path, (database) => database.exec('drop table run_summary'))
  const ledger = sqliteLedger(path)
  expect((await Array.fromAsync(exportEvents(ledger))).length).toBeGreaterThan(0)
  await ledger.close()
  expect(withRaw(path, (database) => database.pragma('user_version', { simple: true }))).toBe(schemaVersion)
})

describe.each(olderVersions)('a ledger file of schema version %d', (version) => {
  async function older(): Promise<{ readonly path: string; readonly newest: string }> {
    const { path: newest } = await recorded()
    const path = temporaryFile()
    await writeOlderLedger(path, version, newest)
    return { path, newest }
  }

  it('is brought up to date with all that it holds, and takes what comes', async () => {
    const { path, newest } = await older()
    const ledger = sqliteLedger(path)
    const runId = await recordRun(ledger, 3)
    const verdicts = await Array.fromAsync(verifyLedger(ledger), ({ ok }) => ok)
    expect(verdicts).toEqual([true, true, true, true])
    expect((await ledgerStats(ledger, { since: 0, maxListed: 3 })).counts).toMatchObject({ done: 3 })
    await ledger.close()
    const [after, before] = [await lines(path), await lines(newest)]
    expect(after.filter((line) => !line.includes(runId))).toEqual(before)
    expect(schemaOf(path)).toEqual(schemaOf(newest))
    expect(withRaw(path, (database) => database.pragma('user_version', { simple: true }))).toBe(schemaVersion)
  })

  it('is left as it is by a reader, which learns what brings it up to date', async () => {
    const { path } = await older()
    expect(digestOf(schemaOf(path))).toBe(released[version])
    const before = filesBeside(path)
    const open = (): unknown => sqliteLedger(path, { readOnly: true })
    expect(open).toThrow(LedgerUnavailableError)
    expect(open).toThrow(new RegExp(`older schema version ${version}, and readOnly upgrades nothing`))
    expect(open).toThrow(expect.objectContaining({ reason: 'older_schema' }))
    expect(filesBeside(path)).toEqual(before)
  })
})
