import fs, { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ConfigurationError } from '@tallystick/core'
import { sqliteMemory } from '@tallystick/tools/memory'
import { sqlQuery } from '@tallystick/tools/sql-query'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { openFiles } from '../files/sandbox.ts'
import { storePromises } from './store-promises.ts'
import { lastingFolder } from '../../../../../scripts/testing/temporary-folder.ts'

const folder = lastingFolder()

describe('sqliteMemory', () => {
  let store: ReturnType<typeof sqliteMemory>
  beforeAll(() => {
    store = sqliteMemory(join(folder, 'promises.db'))
  })
  afterAll(() => store.close())
  storePromises(() => store)

  it('keeps memories in a file that only its owner reads, for every process that opens it', async () => {
    const path = join(folder, 'kept.db')
    const owner = { owner: 'subject:ann' }
    const [one, other] = [sqliteMemory(path), sqliteMemory(path)]
    await one.save(owner, { key: 'a', text: 'A tent.', at: 1, max: 9 })
    await one.close()
    expect(await other.list(owner, 9)).toEqual([{ id: 1, text: 'A tent.', at: 1 }])
    await other.close()
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('leaves no trace of what was removed or erased in its file', async () => {
    const path = join(folder, 'traces.db')
    const ann = { owner: 'subject:ann', subject: 'ann' }
    const file = sqliteMemory(path)
    const word = `w${Buffer.from('swordfish').toString('hex')}`
    for (const key of ['a', 'b']) await file.save(ann, { key, text: `swordfish ${key}`, at: 1, max: 9 })
    const bytes = (): string => readFileSync(path, 'latin1')
    expect(bytes()).toContain('swordfish a')
    expect(bytes()).toContain(word)
    await file.remove(ann, 1, 'r')
    expect(bytes()).not.toContain('swordfish a')
    await file.erase({ subject: 'ann' })
    for (const trace of ['swordfish', word.slice(1), 'subject:ann']) expect(bytes()).not.toContain(trace)
    await file.close()
  })

  it('writes no log beside its file, where another program has made one', async () => {
    const path = join(folder, 'logged.db')
    const owner = { owner: 'subject:ann' }
    await sqliteMemory(path).close()
    const other = new DatabaseSync(path)
    other.exec('pragma journal_mode = wal')
    other.close()
    const store = sqliteMemory(path)
    await store.save(owner, { key: 'a', text: 'A tent.', at: 1, max: 9 })
    expect(readdirSync(folder).filter((name) => name.startsWith('logged.db'))).toEqual(['logged.db'])
    await store.close()
  })

  it('refuses a Node that cannot load better-sqlite3', () => {
    const { versions } = process
    const descriptor = Object.getOwnPropertyDescriptor(process, 'versions')!
    Object.defineProperty(process, 'versions', { ...descriptor, value: { ...versions, napi: '9' } })
    onTestFinished(() => void Object.defineProperty(process, 'versions', descriptor))
    expect(() => sqliteMemory(join(folder, 'old.db'))).toThrow(/^sqliteMemory needs Node 22\.14 or newer/)
    expect(() => sqlQuery({ path: 'shop.db' })).toThrow(/^The tool sql_query needs Node 22\.14 or newer/)
  })

  // Where a process closes a file, the system takes all of its locks on it, also those of transactions of other threads.
  it('leaves a file that is there to SQLite alone', async () => {
    const path = join(folder, 'locked.db')
    await sqliteMemory(path).close()
    const opened = [vi.spyOn(fs, 'openSync'), vi.spyOn(fs, 'writeFileSync')]
    syncBuiltinESMExports()
    onTestFinished(() => {
      vi.restoreAllMocks()
      syncBuiltinESMExports()
    })
    await sqliteMemory(path).close()
    expect(opened.flatMap(({ mock }) => mock.calls.map(([file]) => file))).toEqual([])
  })

  it('refuses an empty path, and a database of something else, which stays as it is', () => {
    expect(() => sqliteMemory('')).toThrow(ConfigurationError)
    expect(() => sqliteMemory(1 as never)).toThrow('the path of its file')
    const path = join(folder, 'other.db')
    const other = new DatabaseSync(path)
    other.exec('create table event (id integer)')
    other.close()
    const before = readFileSync(path)
    const open = openFiles()
    expect(() => sqliteMemory(path)).toThrow(`${path} is a database of another application`)
    expect(openFiles()).toBeLessThanOrEqual(open)
    expect(readFileSync(path).equals(before)).toBe(true)
    const text = join(folder, 'text.db')
    writeFileSync(text, 'no database, and far longer than the head of one is. '.repeat(20))
    expect(() => sqliteMemory(text)).toThrow('not a database')
  })
})
