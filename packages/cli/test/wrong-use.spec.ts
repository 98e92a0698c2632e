import { writeFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { openShop } from './kit/shop.ts'
import { json, tallystickHere } from './kit/tallystick.ts'

describe('what is asked wrongly', () => {
  it('is a 5 for a ledger, a run or a call that is not there, with the next command', async () => {
    await using shop = await openShop()
    const absent = await tallystickHere('list', shop.ledgerPath)
    expect(absent).toEqual({
      code: 5,
      stdout: '',
      stderr: expect.stringContaining(`There is no ledger at ${shop.ledgerPath}`),
    })
    const { runId } = await shop.start()
    expect(await tallystickHere('show', shop.ledgerPath, 'nobody')).toMatchObject({
      code: 5,
      stderr: expect.stringContaining(`tallystick list ${shop.ledgerPath}`),
    })
    expect(await tallystickHere('show', shop.ledgerPath, runId, '--at', '999')).toMatchObject({ code: 5 })
    const call = await tallystickHere('approve', shop.ledgerPath, runId, 'call_x', '--json')
    expect(call.code).toBe(5)
    expect(json(call.stderr)).toMatchObject({
      error: {
        code: 'not_found',
        exitCode: 5,
        message: expect.stringContaining(`tallystick show ${shop.ledgerPath} ${runId}`),
      },
    })
  })

  it.each([
    [['show'], "missing required argument 'ledger'"],
    [['list', 'x.db', '--wrong'], "unknown option '--wrong'"],
    [['dance'], "unknown command 'dance'"],
    [['shw', 'x.db'], '(Did you mean show?)'],
    [['list', 'x.db', '--sesion', 'a'], '(Did you mean --session?)'],
    [['run', 'x.db'], 'There is no text'],
    [['run', 'x.db', 'go', '--limit', 'maxTurns=soon'], 'maxTurns has to be a number from 0.'],
    [['run', 'x.db', 'go', '--limit', 'wishes=3'], 'Write name=value, such as maxTurns=5'],
    [['run', 'x.db', 'go', '--limit', 'onLimit=hope'], 'onLimit is one of finalize, stop, ask.'],
    [['run', 'x.db', 'go', '--answer', '--json'], 'cannot be used with option'],
    [
      ['feedback', 'x.db', 'latest', '--score', '0x10'],
      "argument '0x10' is invalid. A score has to be a number",
    ],
    [['show', 'x.db', 'latest', '--at', '0'], 'It has to be a whole number from 1.'],
    [['approve', 'x.db', 'latest', 'c', '--input', '[1]'], 'It has to be a JSON object'],
    [
      ['approve', 'x.db', 'latest', 'c', '--input', '{"id":2512292042121000001}'],
      'The number 2512292042121000001 cannot be read without changing it',
    ],
    [['deny', 'x.db', 'latest', 'c'], "required option '--reason <text>' not specified"],
    [['resume', 'x.db', 'latest', '--yes', '--deny', 'no'], 'cannot be used with option'],
  ])('is a 2 for %j', async (words, message) => {
    const ending = await tallystickHere(...words)
    expect(ending).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(message) })
  })

  it('names the help of the verb that was meant, or of all', async () => {
    const { stderr } = await tallystickHere('show', '--at', '1')
    expect(stderr).toMatch(/\nSee what it takes: tallystick show --help\n$/)
    expect((await tallystickHere('shw')).stderr).toMatch(/\nSee what it takes: tallystick --help\n$/)
  })

  it('is reported to programs as JSON', async () => {
    const { code, stdout, stderr } = await tallystickHere('list', '--json')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    const message = expect.stringContaining("missing required argument 'ledger'")
    expect(json(stderr)).toEqual({ error: { code: 'usage', exitCode: 2, message } })
  })

  it('is a 2 with the help, and nothing after it, where no verb is named', async () => {
    const { stdout: help } = await tallystickHere('--help')
    expect(await tallystickHere()).toEqual({ code: 2, stdout: '', stderr: help })
  })

  it('is answered with help where it is asked for', async () => {
    const { code, stdout } = await tallystickHere('--help')
    expect(code).toBe(0)
    for (const verb of [
      'run',
      'replay',
      'list',
      'show',
      'verify',
      'export',
      'approve',
      'deny',
      'cancel',
      'resume',
    ]) {
      expect(stdout).toMatch(new RegExp(`^ {2}${verb} `, 'm'))
    }
    expect(stdout).toContain('3 replay diverged, 4 ledger damaged')
  })

  it('leaves a file that is not a ledger as it is', async () => {
    await using shop = await openShop()
    await writeFile(shop.ledgerPath, 'not a database, but a shopping list')
    const { code, stderr } = await tallystickHere('list', shop.ledgerPath)
    expect(code).toBe(1)
    expect(stderr).toContain('not a Tallystick ledger')
  })
})
