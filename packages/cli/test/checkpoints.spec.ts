import { generateKeyPairSync } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { formatVerifierKey } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { openShop, type Shop } from './kit/shop.ts'
import { json, tallystickHere } from './kit/tallystick.ts'

const origin = 'example.com/shop'

/** The words that sign the ledger of a shop and verify it, with keys of their own. */
async function signer(shop: Shop): Promise<{ out: string; sign: string[]; compare: string[] }> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const [key, verifier, out] = ['key.pem', 'key.pub', 'checkpoints'].map((name) =>
    join(shop.folder, name),
  ) as [string, string, string]
  await writeFile(key, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  await writeFile(verifier, `${formatVerifierKey(origin, publicKey)}\n`)
  return {
    out,
    sign: ['checkpoint', shop.ledgerPath, '--out', out, '--key', key, '--origin', origin],
    compare: ['verify', shop.ledgerPath, '--checkpoints', out, '--public-key', verifier],
  }
}

describe('checkpoint and verify --checkpoints', () => {
  it('sign a ledger, and find that it is what was signed', async () => {
    await using shop = await openShop()
    const { out, sign, compare } = await signer(shop)
    const { seq } = await shop.start()
    const made = await tallystickHere(...sign)
    expect(made.code).toBe(0)
    expect(made.stderr).toContain(`Signed 1 head more; ${out} covers 1 head.`)
    expect(made.stdout).toMatch(/^example\.com\/shop\n1\n\S{44}\n\n\u2014 example\.com\/shop \S{92}\n$/)
    expect(await readFile(out, 'utf8')).toContain(made.stdout)
    const again = await tallystickHere(...sign, '--json')
    expect(json(again.stdout)).toMatchObject({ origin, size: 1, added: 0, note: made.stdout })
    expect((await tallystickHere(...sign)).stderr).toContain('Nothing has changed since the last checkpoint')
    const sound = await tallystickHere(...compare)
    expect(sound.code).toBe(0)
    expect(sound.stdout).toContain(`checkpoints  ok  1 checkpoint, 1 run, ${seq} events as signed\n`)
    expect(sound.stdout).toContain(`ledger  ok  1 run, ${seq} events, ${seq} of them signed\n`)
    expect(sound.stderr).toBe('')
    const unsigned = await tallystickHere('verify', shop.ledgerPath)
    expect(unsigned.stdout).toContain(`ledger  ok  1 run, ${seq} events, 0 of them signed\n`)
    expect(unsigned.stderr).toContain('can have cut off the last')
    await shop.start()
    const later = await tallystickHere(...compare)
    expect(later.stdout).toContain(`${seq} of them signed\n`)
    expect(later.stderr).toContain('Only signed checkpoints, kept elsewhere, reveal that')
    const other = await tallystickHere(...compare, '--origin', 'example.com/other')
    expect(other.code).toBe(4)
    expect(other.stderr).toContain('No fault was found in the ledger itself')
    expect(other.stderr).not.toContain('is not what was written')
  })

  it('find a ledger that was made anew, though it verifies without them, with a 4 that names the run', async () => {
    await using shop = await openShop()
    const { sign, compare } = await signer(shop)
    const { runId, seq } = await shop.start()
    await tallystickHere(...sign)
    const { stdout } = await tallystickHere('export', shop.ledgerPath)
    const file = join(shop.folder, 'rewritten.jsonl')
    await writeFile(file, stdout.replaceAll('it is money', 'it is nothing'))
    await rm(shop.ledgerPath)
    expect((await tallystickHere('import', shop.ledgerPath, file)).code).toBe(0)
    expect((await tallystickHere('verify', shop.ledgerPath)).code).toBe(0)
    const found = await tallystickHere(...compare)
    expect(found.code).toBe(4)
    expect(found.stdout).toMatch(new RegExp(`^${runId}  ok  ${seq} events; imported by `, 'm'))
    expect(found.stdout).toMatch(
      new RegExp(
        `^${runId}  NOT AS SIGNED  at event ${seq}, by checkpoint 1: hash should be [\\w-]{43}, is [\\w-]{43}$`,
        'm',
      ),
    )
    expect(found.stderr).toContain('This ledger is not what was written')
    const verdicts = (await tallystickHere(...compare, '--json')).stdout.trimEnd().split('\n').map(json)
    expect(verdicts).toMatchObject([
      { scope: 'run', ok: true },
      { scope: 'store', ok: true },
      { scope: 'checkpoints', ok: false, checkpoints: 1, runs: 1, broken: [{ runId, seq, what: 'hash' }] },
    ])
  })

  it('are refused without a key that fits, or any', async () => {
    await using shop = await openShop()
    const { sign, compare, out } = await signer(shop)
    await shop.start()
    expect(await tallystickHere(...compare.slice(0, 4))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('give both --checkpoints FILE and --public-key FILE'),
    })
    expect(await tallystickHere(...compare)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`There are no checkpoints in ${out}`),
    })
    expect(await tallystickHere(...sign.with(5, `${out}-absent`))).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('cannot be read (ENOENT'),
    })
    expect(await tallystickHere(...sign.with(5, shop.ledgerPath))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('openssl genpkey -algorithm ed25519'),
    })
    expect((await tallystickHere(...sign.slice(0, 6))).code).toBe(2)
  })
})
