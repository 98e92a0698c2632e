import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openShop } from './kit/shop.ts'
import { json, tallystickFed, tallystickHere } from './kit/tallystick.ts'

describe('import', () => {
  it('reads what export printed into a new ledger, which lists, exports and verifies the same', async () => {
    await using shop = await openShop()
    const [older, newer] = [await shop.start(), await shop.start()]
    const { stdout: lines } = await tallystickHere('export', shop.ledgerPath)
    const [file, copy] = [join(shop.folder, 'runs.jsonl'), join(shop.folder, 'copy.db')]
    await writeFile(file, lines)
    expect(await tallystickHere('import', copy, file)).toEqual({
      code: 0,
      stderr: '',
      stdout:
        `${older.runId}  ${older.seq} events\n${newer.runId}  ${newer.seq} events\n` +
        `imported  2 runs, ${older.seq + newer.seq} events\n`,
    })
    for (const verb of ['list', 'export']) {
      expect(await tallystickHere(verb, copy)).toEqual(await tallystickHere(verb, shop.ledgerPath))
    }
    const [here, there] = [
      await tallystickHere('verify', copy),
      await tallystickHere('verify', shop.ledgerPath),
    ]
    // The copy tells where its runs come from.
    expect(here.stdout).toMatch(/18 events; imported by \S+, 2\S+\n/)
    expect(here.stdout.replaceAll(/; imported by .*/g, '')).toBe(there.stdout)
    const again = await tallystickHere('import', copy, file, '--json')
    expect(again.stdout.trimEnd().split('\n').map(json)).toEqual([
      { runId: older.runId, events: 0, present: older.seq },
      { runId: newer.runId, events: 0, present: newer.seq },
      { runs: 2, events: 0, present: older.seq + newer.seq },
    ])
  })

  it('reads its standard input where the file is -', async () => {
    await using shop = await openShop()
    const { runId, seq } = await shop.start()
    const { stdout: lines } = await tallystickHere('export', shop.ledgerPath)
    const copy = join(shop.folder, 'copy.db')
    expect(await tallystickFed(lines, 'import', copy, '-')).toEqual({
      ...{ code: 0, stderr: '' },
      stdout: `${runId}  ${seq} events\nimported  1 run, ${seq} events\n`,
    })
    expect(await tallystickHere('export', copy)).toMatchObject({ stdout: lines })
  })

  it('leaves out a last line that is cut off, and says so', async () => {
    await using shop = await openShop()
    const { runId, seq } = await shop.start()
    const file = join(shop.folder, 'runs.jsonl')
    await writeFile(file, (await tallystickHere('export', shop.ledgerPath)).stdout)
    await appendFile(file, `{"runId":"${runId}","seq":${seq + 1},"epo`)
    const { code, stdout, stderr } = await tallystickHere('import', join(shop.folder, 'copy.db'), file)
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: `Line ${seq + 1}, the last one, is cut off in the middle of an event, so it was left out.\n`,
    })
    expect(stdout).toContain(`imported  1 run, ${seq} events\n`)
  })

  it('is a 4 for a damaged line, a 1 for another run of the same name, and a 5 for no file', async () => {
    await using shop = await openShop()
    const { seq } = await shop.start()
    const file = join(shop.folder, 'runs.jsonl')
    const { stdout } = await tallystickHere('export', shop.ledgerPath)
    await writeFile(file, 'garbage')
    expect(await tallystickHere('import', join(shop.folder, 'garbage.db'), file)).toMatchObject({
      ...{
        code: 4,
        stdout: '',
        stderr: expect.stringContaining('Line 1 cannot be imported: it is not JSON'),
      },
    })
    await writeFile(file, stdout.replace('\n', '\nno event\n'))
    const damaged = await tallystickHere('import', join(shop.folder, 'copy.db'), file)
    expect(damaged).toMatchObject({ code: 4, stdout: '' })
    expect(damaged.stderr).toContain('error: Line 2 cannot be imported: it is not JSON')
    await writeFile(file, stdout.replace('"text":"Buy tea."', '"text":"Buy coffee."'))
    const other = await tallystickHere('import', shop.ledgerPath, file)
    expect(other).toMatchObject({ code: 1, stdout: '' })
    expect(other.stderr).toContain('differs from the imported one')
    expect((await tallystickHere('export', shop.ledgerPath)).stdout).toBe(stdout)
    expect(stdout.trimEnd().split('\n')).toHaveLength(seq)
    for (const absent of [join(shop.folder, 'absent.jsonl'), shop.folder]) {
      expect(await tallystickHere('import', join(shop.folder, 'copy.db'), absent)).toMatchObject({
        code: 5,
        stderr: expect.stringContaining(`There is no file ${absent}`),
      })
    }
    expect(await readFile(file, 'utf8')).toContain('coffee')
  })
})
