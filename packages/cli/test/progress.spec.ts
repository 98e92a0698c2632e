import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openShop } from './kit/shop.ts'
import { tallystickHere, tallystickOnTerminal } from './kit/tallystick.ts'

/** What verbs that work long say at their end, all of it, however far they were meanwhile. */
const said = { verify: /^Events that no checkpoint signs[^\r]*\n$/, export: /^$/, stats: /^$/ }
const verbs = ['verify', 'export', 'stats'] as const

describe('long work', () => {
  it('says how far it is where stderr is a terminal, on a line that is gone at the end', async () => {
    await using shop = await openShop()
    const [older, newer] = [await shop.start(), await shop.start()]
    const all = older.seq + newer.seq
    for (const verb of verbs) {
      const { code, stderr } = await tallystickOnTerminal(verb, shop.ledgerPath)
      expect(code).toBe(0)
      expect(stderr).toContain(`\r\u001B[K${newer.seq} of ${all} events`)
      expect(stderr).toContain(`\r\u001B[K${all} of ${all} events`)
      expect(stderr.split('\r\u001B[K').at(-1)).toMatch(said[verb])
    }
  })

  it('says how much of a file was read into a ledger', async () => {
    await using shop = await openShop()
    await shop.start()
    const { stdout } = await tallystickHere('export', shop.ledgerPath)
    const file = join(shop.folder, 'runs.jsonl')
    await writeFile(file, stdout)
    const size = (Buffer.byteLength(stdout) / 1_000_000).toFixed(1)
    const copied = await tallystickOnTerminal('import', join(shop.folder, 'copy.db'), file)
    expect(copied).toMatchObject({ code: 0, stderr: `\r\u001B[K${size} of ${size} MB\r\u001B[K` })
  })

  it('says nothing of it elsewhere, nor to programs', async () => {
    await using shop = await openShop()
    await shop.start()
    for (const verb of verbs) {
      expect((await tallystickHere(verb, shop.ledgerPath)).stderr).toMatch(said[verb])
      expect((await tallystickOnTerminal(verb, shop.ledgerPath, '--json')).stderr).toBe('')
    }
  })
})
