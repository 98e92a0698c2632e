import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname } from 'node:path'
import { LedgerUnavailableError } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { findNetworkFileSystem } from '../src/sqlite/open-database.ts'
import { refusalOf } from './support/refusal.ts'
import { emptyLedgerFile, temporaryFile } from './support/temporary-folder.ts'

const platform = Object.getOwnPropertyDescriptor(process, 'platform') as PropertyDescriptor
const onPlatform = (value: string): void =>
  void Object.defineProperty(process, 'platform', { ...platform, value })

describe('a folder on another machine', () => {
  let type: () => number
  beforeEach(() => {
    onPlatform('linux')
    type = () => 0x6969
    vi.spyOn(fs, 'statfsSync').mockImplementation(() => ({ type: type() }) as never)
    syncBuiltinESMExports()
  })
  afterEach(() => {
    vi.restoreAllMocks()
    syncBuiltinESMExports()
    Object.defineProperty(process, 'platform', platform)
  })

  it('is named by its file system where the host knows it', () => {
    expect(findNetworkFileSystem('/runs')).toBe('NFS')
    expect(vi.mocked(fs.statfsSync)).toHaveBeenCalledWith('/runs')
    type = () => 0xef53
    expect(findNetworkFileSystem('/runs')).toBeUndefined()
    type = () => {
      throw new Error('no such folder')
    }
    expect(findNetworkFileSystem('/runs')).toBeUndefined()
    type = () => 0x6969
    onPlatform('darwin')
    expect(findNetworkFileSystem('/runs')).toBeUndefined()
  })

  it('holds no ledger that is written, and is left as it is; one that is only read is opened', async () => {
    const path = temporaryFile()
    const refusal = refusalOf(() => sqliteLedger(path))
    expect(refusal).toBeInstanceOf(LedgerUnavailableError)
    expect(refusal.message).toContain(
      `The ledger ${path} lies on a network file system (NFS), where SQLite's log would be corrupted`,
    )
    expect(fs.readdirSync(dirname(path))).toEqual([])
    const ledger = sqliteLedger(emptyLedgerFile(), { readOnly: true })
    expect(await Array.fromAsync(ledger.runs())).toEqual([])
    await ledger.close()
  })
})
