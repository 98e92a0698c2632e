import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { hostConfig } from './kit/host.ts'
import { openShop, shopConfig } from './kit/shop.ts'
import { json, startTallystick, tallystickFed, tallystickHere, type Ending } from './kit/tallystick.ts'

const server = inject('postgres')
const url = 'connectionString' in server ? server.connectionString : ''
const { password } = URL.parse(url) ?? { password: '' }
const shopping = ['--config', shopConfig]

let ledgers = 0
/** A connection string of a ledger that is not there yet. */
const freshLedger = (parameters = ''): string => `${url}?schema=cli_${process.pid}_${++ledgers}${parameters}`

/** Runs the command, and demands that it keeps the password to itself. */
async function discreetly(...words: readonly string[]): Promise<Ending> {
  const ending = await tallystickHere(...words)
  expect(ending.stdout + ending.stderr).not.toContain(password)
  return ending
}

// Not every machine has a server; the test run says why.
describe.skipIf(url === '')('a ledger in Postgres', () => {
  it('is taken by every verb, and its password is printed by none', async () => {
    const ledger = freshLedger()
    const shown = ledger.replace(`:${password}`, '')
    const waiting = await discreetly('run', ledger, 'Buy tea.', '--session', 'tea', ...shopping)
    expect(waiting).toMatchObject({ code: 0 })
    const [, run = '', call = ''] = /approve '\S+' (\S+) (\S+) --by/.exec(waiting.stdout) ?? []
    expect(waiting.stdout).toContain(`  tallystick approve '${shown}' ${run} ${call} --by you\n`)
    const listed = await discreetly('list', ledger, '--session', 'tea', '--json')
    expect(json(listed.stdout)).toMatchObject({ runId: run, status: 'suspended' })

    const approved = await discreetly('approve', ledger, 'latest', call, '--by', 'ann')
    expect(approved).toMatchObject({ code: 0, stdout: `tallystick resume '${shown}' ${run}\n` })
    const inbox = await discreetly('show', ledger, run)
    expect(inbox.stdout).toContain(
      `inbox    approve ${call} by ann, for the process that drives the run next\n`,
    )
    const resumed = await discreetly('resume', ledger, run, '--json', ...shopping)
    expect(json(resumed.stdout)).toMatchObject({ runId: run, text: 'Payment: 5 USD paid', ledger: shown })

    const events = (await discreetly('export', ledger)).stdout.trimEnd().split('\n')
    expect((await discreetly('tail', ledger, run, '--json')).stdout.trimEnd().split('\n')).toHaveLength(
      events.length,
    )
    for (const words of [
      ['stats', ledger],
      ['explain', ledger, run, '2'],
      ['verify', ledger],
      ['replay', ledger, run, ...shopping],
      ['fork', ledger, run, '--at', '2', '--yes', ...shopping],
      ['diff', ledger, run, 'latest'],
    ]) {
      expect({ words, ...(await discreetly(...words)) }).toMatchObject({ words, code: 0 })
    }
    expect((await discreetly('stats', ledger)).stdout).toContain('runs: 2 done\n')
    expect(await discreetly('cancel', ledger, run)).toMatchObject({ code: 1 })
  })

  it('is followed live while another process drives a run in it', async () => {
    const ledger = freshLedger('&pooled=true')
    await discreetly('run', ledger, 'Buy tea.', ...shopping)
    const tail = startTallystick('tail', ledger, 'latest')
    await tail.says('The run is suspended on pay')
    await discreetly('resume', ledger, 'latest', '--yes', ...shopping)
    const { code, stdout, stderr } = await tail.ending
    expect(code).toBe(0)
    expect(stdout).toContain('Payment: 5 USD paid')
    expect(stdout + stderr).not.toContain(password)
  })

  it('is served, and what a crash left is resumed', async () => {
    await using shop = await openShop()
    await shop.start()
    const lines = (await tallystickHere('export', shop.ledgerPath)).stdout.split('\n')
    const cut = lines.findIndex((line) => line.includes('"type":"tool_started"'))
    const ledger = freshLedger()
    const crashed = lines.slice(0, cut + 1).join('\n') + '\n'
    expect(await tallystickFed(crashed, 'import', ledger, '-')).toMatchObject({ code: 0 })
    const serving = startTallystick('serve', ledger, '--json', ...shopping)
    onTestFinished(() => serving.kill('SIGKILL'))
    let printed = ''
    await serving.prints((stdout) => (printed = stdout).endsWith('\n'))
    const { url: served, token } = json(printed) as { url: string; token: string }
    const { runId } = JSON.parse(lines[0] ?? '') as { runId: string }
    const headers = { authorization: `Bearer ${token}` }
    await fetch(`${served}/runs/${runId}/result?waitMs=30000`, { headers })
    expect(await (await fetch(`${served}/runs/${runId}`, { headers })).json()).toMatchObject({
      status: 'suspended',
    })
    serving.kill('SIGTERM')
    await serving.ending
  })

  it('takes the runs of a file, and gives them back, byte for byte', async () => {
    await using shop = await openShop()
    await shop.start()
    await tallystickHere('run', shop.ledgerPath, 'host', 'Hi.', '--config', hostConfig)
    await tallystickHere('resume', shop.ledgerPath, (await shop.start()).runId, '--yes', ...shopping)
    const { stdout: lines } = await tallystickHere('export', shop.ledgerPath)
    const [ledger, back, file] = [
      freshLedger(),
      join(shop.folder, 'back.db'),
      join(shop.folder, 'runs.jsonl'),
    ]
    await writeFile(file, lines)
    expect(await discreetly('import', ledger, file)).toMatchObject({ code: 0 })
    const exported = await discreetly('export', ledger)
    expect(exported).toEqual({ code: 0, stdout: lines, stderr: '' })
    expect(await tallystickFed(exported.stdout, 'import', back, '-')).toMatchObject({ code: 0 })
    expect(await tallystickHere('export', back)).toEqual({ code: 0, stdout: lines, stderr: '' })
    expect(await tallystickHere('list', back)).toEqual(await discreetly('list', ledger))
    // They were imported one after the other.
    const withoutTimes = ({ stdout, ...rest }: Ending): Ending => ({
      ...rest,
      stdout: stdout.replaceAll(/(?<=imported by \S+, )\S+/g, '…'),
    })
    expect(withoutTimes(await tallystickHere('verify', back))).toEqual(
      withoutTimes(await discreetly('verify', ledger)),
    )
  })

  it('exits with 5 for a ledger that does not exist, and only verbs that begin runs create one', async () => {
    const ledger = freshLedger()
    for (const words of [
      ['list', ledger],
      ['cancel', ledger, 'latest'],
      ['resume', ledger, 'latest'],
    ]) {
      const ending = await discreetly(...words)
      expect(ending).toMatchObject({ code: 5, stdout: '' })
      expect(ending.stderr).toMatch(/^error: There is no ledger at \S+:\d+\/postgres, schema cli_\w+, /)
    }
    expect(await discreetly('run', ledger, 'host', 'Hi.', '--config', hostConfig)).toMatchObject({ code: 0 })
    expect(await discreetly('list', ledger)).toMatchObject({ code: 0 })
  })

  it('is a 1 where the server refuses the user, and a 2 where the connection string means nothing', async () => {
    const wrong = freshLedger().replace(password, 'sesame')
    const refused = await discreetly('list', wrong)
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('does not let this user in') })
    expect(refused.stderr).not.toContain('sesame')
    for (const meaningless of [`${url}?pooled=maybe`, 'postgres://ada:sesame@:none/x']) {
      const ending = await discreetly('list', meaningless, '--json')
      expect(ending).toMatchObject({ code: 2, stdout: '' })
      expect(ending.stderr).not.toContain('sesame')
    }
  })
})
