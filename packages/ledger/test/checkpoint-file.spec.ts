import { generateKeyPairSync } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { ConfigurationError, LedgerDamagedError, memoryLedger } from '@tallystick/core'
import {
  formatVerifierKey,
  verifyCheckpoints,
  writeCheckpoint,
  type CheckpointsVerdict,
} from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { another, kept, origin, privateKey, publicKey } from './support/kept-ledger.ts'
import { effort } from '../../../scripts/testing/effort.ts'

describe('a file of checkpoints', () => {
  async function changed(change: (text: string) => string): Promise<CheckpointsVerdict> {
    const { path, file, sign, compared } = await kept()
    await sign()
    await another(path)
    await sign()
    writeFileSync(file, change(readFileSync(file, 'utf8')))
    return await compared()
  }

  it('is found changed, line by line', async () => {
    const { path, file, sign, compared } = await kept()
    await sign()
    await another(path)
    await sign()
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
    for (const [index, line] of lines.entries()) {
      if (line === '') continue
      const other = line.replace(/[0-9a-z](?=[^0-9a-z]*$)/, (last) => (last === '0' ? '1' : '0'))
      writeFileSync(file, `${lines.with(index, other).join('\n')}\n`)
      const { ok, broken, checkpoints } = await compared()
      expect({ index, ok, count: broken.length }).toEqual({ index, ok: false, count: 1 })
      expect(broken[0]).toMatchObject({ checkpoint: checkpoints + 1 })
      await expect(sign()).rejects.toThrow(LedgerDamagedError)
    }
  })

  it('is found out where heads were left out, moved or added, whichever key signed it', async () => {
    const without = await changed((text) => text.replace('heads 2', 'heads 1').replace(/\n\S+ \d+ \S+/, ''))
    expect(without.broken).toMatchObject([{ what: 'size', expected: '1', found: '2', checkpoint: 1 }])
    const moved = await changed((text) => text.replace(/\n(\S+ \d+ \S+)\n(\S+ \d+ \S+)/, '\n$2\n$1'))
    expect(moved.broken).toMatchObject([{ what: 'root', checkpoint: 1 }])
    expect(moved.broken[0]).not.toHaveProperty('runId')
    const once = await changed((text) => text.slice(text.lastIndexOf('heads')))
    expect(once.broken).toMatchObject([{ what: 'size', expected: '1', found: '3' }])
  })

  it('is of one key and one origin', async () => {
    const { path, file, sign } = await kept()
    await sign()
    const ledger = sqliteLedger(path, { readOnly: true })
    const stranger = generateKeyPairSync('ed25519')
    const as = (key: Parameters<typeof verifyCheckpoints>[1]['publicKey'], of?: string) =>
      verifyCheckpoints(ledger, { file, publicKey: key, ...(of !== undefined && { origin: of }) })
    expect((await as(stranger.publicKey)).broken).toMatchObject([{ what: 'signature', checkpoint: 1 }])
    expect((await as(publicKey, 'example.com/other')).broken).toMatchObject([
      { what: 'origin', expected: 'example.com/other', found: origin },
    ])
    expect(await as(formatVerifierKey(origin, publicKey))).toMatchObject({ ok: true })
    expect((await as(formatVerifierKey('example.com/other', publicKey))).ok).toBe(false)
    expect(await as(publicKey.export({ type: 'spki', format: 'pem' }) as string)).toMatchObject({ ok: true })
    await expect(writeCheckpoint(ledger, { file, key: stranger.privateKey, origin })).rejects.toThrow(
      'Use the key and the origin that the file was begun with',
    )
    await expect(
      writeCheckpoint(ledger, { file, key: privateKey, origin: 'example.com/other' }),
    ).rejects.toThrow(LedgerDamagedError)
    await ledger.close()
  })

  it('is carried on where its last checkpoint was cut off at any byte', async () => {
    const { path, file, sign, compared } = await kept()
    await sign()
    const first = readFileSync(file)
    await another(path)
    await sign()
    const whole = readFileSync(file)
    for (let length = first.length; length < whole.length; length += effort({ quick: 17, thorough: 3 })) {
      writeFileSync(file, whole.subarray(0, length))
      expect(await compared()).toMatchObject({ ok: true, checkpoints: 1 })
      expect(await sign()).toMatchObject({ size: 3, added: 1 })
      expect(readFileSync(file)).toEqual(whole)
    }
  })

  it('is left as it is where another process has written it meanwhile', async () => {
    const { path, file, sign } = await kept()
    await sign()
    const whole = readFileSync(file, 'utf8')
    const options = { file, key: privateKey, origin }
    const overtaken = async (): Promise<unknown> => {
      const ledger = sqliteLedger(path, { readOnly: true })
      const runs: typeof ledger.runs = async function* (filter) {
        appendFileSync(file, 'heads 1\n')
        yield* ledger.runs(filter)
      }
      try {
        return await writeCheckpoint({ ...ledger, runs }, options)
      } finally {
        await ledger.close()
      }
    }
    // Nothing is added, so nothing is written.
    expect(await overtaken()).toMatchObject({ added: 0 })
    expect(readFileSync(file, 'utf8')).toBe(`${whole}heads 1\n`)
    await another(path)
    await expect(overtaken()).rejects.toThrow(
      `Another process has written ${file} at the same time, and two checkpoints side by side would damage it. Nothing was written. Let one process make the checkpoints of a file, and make this one again.`,
    )
    expect(readFileSync(file, 'utf8')).toBe(`${whole}heads 1\nheads 1\n`)
  })

  it('is never made out of a file of something else, or of nothing', async () => {
    const { path, file } = await kept()
    const ledger = sqliteLedger(path, { readOnly: true })
    for (const text of ['my notes', 'my notes\n', 'heads of state']) {
      writeFileSync(file, text)
      await expect(writeCheckpoint(ledger, { file, key: privateKey, origin })).rejects.toThrow(
        LedgerDamagedError,
      )
      expect(readFileSync(file, 'utf8')).toBe(text)
    }
    await expect(verifyCheckpoints(ledger, { file: `${file}-absent`, publicKey })).rejects.toThrow(
      ConfigurationError,
    )
    for (const bad of ['', 'two words']) {
      const wrong = { file: `${file}-absent`, key: privateKey, origin: bad }
      await expect(writeCheckpoint(ledger, wrong)).rejects.toThrow(ConfigurationError)
    }
    expect(existsSync(`${file}-absent`)).toBe(false)
    await ledger.close()
    const memory = memoryLedger()
    await expect(writeCheckpoint(memory, { file, key: privateKey, origin })).rejects.toThrow(
      'keeps no chain of hashes',
    )
    await expect(verifyCheckpoints(memory, { file, publicKey })).rejects.toThrow(ConfigurationError)
  })
})
