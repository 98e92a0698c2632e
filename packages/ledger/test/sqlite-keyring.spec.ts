import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { sqliteKeyring, sqliteLedger, type SqliteKeyring } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { filesOpen, listsFilesOpen } from './support/files-open.ts'
import { withRaw } from './support/raw-database.ts'
import { refusalOf } from './support/refusal.ts'
import { temporaryFile, temporaryFolder } from './support/temporary-folder.ts'

function opened(path: string): SqliteKeyring {
  const keys = sqliteKeyring(path)
  onTestFinished(() => keys.close())
  return keys
}

describe('sqliteKeyring', () => {
  it('makes one key for each subject, also in a second keyring on the file, until it is destroyed', async () => {
    const path = temporaryFile('keys.db')
    const keys = opened(path)
    const [ada, bob] = [await keys.keyOf('ada'), await keys.keyOf('bob')]
    expect([ada.bytes.length, bob.bytes.length]).toEqual([32, 32])
    expect(ada.id).not.toBe(bob.id)
    expect(Buffer.from(ada.bytes)).not.toEqual(Buffer.from(bob.bytes))
    const other = opened(path)
    expect(await other.keyOf('ada')).toEqual(ada)
    expect(await other.key(bob.id)).toEqual(bob.bytes)
    expect(await other.destroy('ada')).toEqual([ada.id])
    expect(await keys.destroy('ada')).toEqual([])
    expect(await keys.key(ada.id)).toBeUndefined()
    expect((await keys.keyOf('ada')).id).not.toBe(ada.id)
    expect(await keys.key(bob.id)).toEqual(bob.bytes)
  })

  it.each(['', 'a\0b', '\ud800'])('refuses the subject %j', (subject) => {
    const keys = opened(temporaryFile('keys.db'))
    const refusal = refusalOf(() => keys.keyOf(subject))
    expect(refusal).toBeInstanceOf(ConfigurationError)
    expect(refusal.message).toMatch(/^A subject needs a name: .*Nothing was written\.$/)
  })

  it('takes a file that is there', async () => {
    const path = temporaryFile('keys.db')
    const made = sqliteKeyring(path)
    const { id } = await made.keyOf('ada')
    made.close()
    expect((await opened(path).keyOf('ada')).id).toBe(id)
  })

  // Windows has no such permissions.
  it.skipIf(process.platform === 'win32')('makes a file that only its owner may read', () => {
    const path = temporaryFile('keys.db')
    opened(path)
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('refuses what is not a file of keys, and names it', () => {
    expect(refusalOf(() => sqliteKeyring('  '))).toBeInstanceOf(ConfigurationError)
    const missing = join(temporaryFolder(), 'missing', 'keys.db')
    expect(refusalOf(() => sqliteKeyring(missing)).message).toContain(missing)
    const text = temporaryFile('keys.db')
    writeFileSync(text, 'x'.repeat(5_000))
    const refusal = refusalOf(() => sqliteKeyring(text))
    expect(refusal).toBeInstanceOf(ConfigurationError)
    expect(refusal.message).toContain(`${text} is not a SQLite database`)
    expect(readFileSync(text, 'utf8')).toBe('x'.repeat(5_000))
  })

  it('leaves no byte of a key that it destroyed, and has no log in which one would live on', async () => {
    const path = temporaryFile('keys.db')
    withRaw(path, (database) => void database.pragma('journal_mode = wal'))
    const keys = opened(path)
    const [ada, bob] = [await keys.keyOf('ada'), await keys.keyOf('bob')]
    const holds = (bytes: Uint8Array): boolean => readFileSync(path).includes(Buffer.from(bytes))
    expect(readdirSync(dirname(path))).toEqual(['keys.db'])
    expect([holds(ada.bytes), holds(bob.bytes)]).toEqual([true, true])
    await keys.destroy('ada')
    expect([holds(ada.bytes), holds(bob.bytes)]).toEqual([false, true])
    expect(holds(Buffer.from(ada.id))).toBe(false)
  })

  it('answers what is wrong with its file later, by its name', async () => {
    const path = temporaryFile('keys.db')
    const keys = opened(path)
    withRaw(path, (database) => database.exec('drop table subject_key'))
    await expect(keys.keyOf('ada')).rejects.toThrow(`The ledger ${path} is damaged: no such table`)
    await expect(keys.key('k1')).rejects.toThrow(`The ledger ${path} is damaged: no such table`)
  })

  // Only Linux lists them.
  it.skipIf(!listsFilesOpen)('keeps no file open that it refuses, or that was closed', async () => {
    const path = temporaryFile('keys.db')
    const keys = sqliteKeyring(path)
    expect(filesOpen(path)).toBe(1)
    keys.close()
    expect(filesOpen(path)).toBe(0)
    await sqliteLedger(`${path}-ledger`).close()
    refusalOf(() => sqliteKeyring(`${path}-ledger`))
    writeFileSync(`${path}-text`, 'x'.repeat(5_000))
    refusalOf(() => sqliteKeyring(`${path}-text`))
    expect(filesOpen(path)).toBe(0)
  })

  it('leaves a ledger as it is', async () => {
    const path = temporaryFile('runs.db')
    await sqliteLedger(path).close()
    const before = readFileSync(path)
    const refusal = refusalOf(() => sqliteKeyring(path))
    expect(refusal).toBeInstanceOf(ConfigurationError)
    expect(refusal.message).toContain(`${path} is a database of something else`)
    expect(readFileSync(path)).toEqual(before)
  })
})
