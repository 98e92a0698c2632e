import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { sqliteKeyring } from '@tallystick/ledger/sqlite'
import { hostConfig } from './kit/host.ts'
import { openShop, shopConfig, type Shop } from './kit/shop.ts'
import {
  json,
  startTallystick,
  tallystickAttended,
  tallystickFed,
  tallystickHere,
  type AtWork,
  type Ending,
} from './kit/tallystick.ts'

const hosts = ['--config', hostConfig]
const shopping = ['--config', shopConfig]

/** What the command printed, an object a line. */
const objects = (text: string): readonly unknown[] => text.trimEnd().split('\n').map(json)

/** The id of the run that a command has shown. */
function shownRun({ stdout }: Pick<Ending, 'stdout'>): string {
  return /^run (\S+) of /m.exec(stdout)?.[1] ?? 'no run was shown'
}

describe('run', () => {
  it('starts a run of the agent that is named, in a ledger that it makes, and shows it', async () => {
    await using shop = await openShop()
    const ended = await tallystickHere('run', shop.ledgerPath, 'host', 'Hello there.', ...hosts)
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    const runId = shownRun(ended)
    expect(ended.stdout).toContain('> Hello there.\n\nTold: Hello there.\n')
    expect(ended.stdout).toContain(
      'done: answered, 1 turn, 0 tool calls, 1000000 tokens in, 500000 out, $2.0000',
    )
    expect(ended.stdout).toContain('\n\nTally: 0 requests, 0 results, 0 open. Tokens: 1000000 tokens in,')
    expect(ended.stdout).toContain(`  tallystick show ${shop.ledgerPath} ${runId}\n`)
    const listed = await tallystickHere('list', shop.ledgerPath, '--json')
    expect(json(listed.stdout)).toMatchObject({ runId, agent: 'host', status: 'done', costUsd: 2 })
    expect((await tallystickHere('verify', shop.ledgerPath)).code).toBe(0)
  })

  it('needs no name where the configuration has one agent, and tells the configuration what is asked', async () => {
    await using shop = await openShop()
    const ended = await tallystickHere(
      'run',
      shop.ledgerPath,
      'Buy tea.',
      '--yes',
      '--by',
      'ann',
      ...shopping,
    )
    expect(ended.code).toBe(0)
    expect(ended.stdout).toMatch(/! call_\S+ was approved by ann \(--yes\)\n/)
    expect(ended.stdout).toContain('Payment: 5 USD paid')
    const words = ['run', shop.ledgerPath, 'shopper', 'Buy tea.', '--deny', 'too dear', ...shopping]
    const denied = await tallystickHere(...words)
    expect(denied.stdout).toContain('denied this call: too dear')
  })

  it('reads the text from standard input', async () => {
    await using shop = await openShop()
    const fed = await tallystickFed('What\n  was sent?\n\n', 'run', shop.ledgerPath, 'host', '-', ...hosts)
    expect(fed.stdout).toContain('Told: What\n  was sent?\n\n')
    expect(await tallystickFed(' \n', 'run', shop.ledgerPath, 'host', '-', ...hosts)).toMatchObject({
      ...{ code: 2, stdout: '', stderr: expect.stringContaining('Standard input is empty') },
    })
  })

  it('prints the answer alone where that is asked for, and the rest on stderr', async () => {
    await using shop = await openShop()
    const { code, stdout, stderr } = await tallystickHere(
      'run',
      shop.ledgerPath,
      'looker',
      'Look.',
      '--answer',
      ...hosts,
    )
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Seen.\n' })
    expect(stderr).toContain('┌ request look')
    const waiting = await tallystickHere('run', shop.ledgerPath, 'Buy tea.', '--answer', ...shopping)
    expect(waiting).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('tallystick approve '),
    })
  })

  it('prints each event and then the result for programs', async () => {
    await using shop = await openShop()
    const { code, stdout } = await tallystickHere('run', shop.ledgerPath, 'host', 'Hi.', '--json', ...hosts)
    expect(code).toBe(0)
    const lines = objects(stdout)
    const [events, result] = [lines.slice(0, -1) as RuntimeEvent[], lines.at(-1)]
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, place) => place + 1))
    expect(events.at(-1)).toMatchObject({ type: 'run_finished' })
    const { runId } = events[0]!
    expect(result).toMatchObject({ runId, status: 'done', reason: 'answered', text: 'Told: Hi.', costUsd: 2 })
    const exported = await tallystickHere('export', shop.ledgerPath)
    expect(events).toEqual(objects(exported.stdout))
  })

  it('continues with a conversation, and says what to do where its last run has not ended', async () => {
    await using shop = await openShop()
    const chat = [shop.ledgerPath, 'host', '--session', 'chat', ...hosts]
    await tallystickHere('run', ...chat, 'One.')
    expect((await tallystickHere('run', ...chat, 'Two.')).stdout).toContain('Told: One. | Two.\n')
    await tallystickHere('run', shop.ledgerPath, 'Buy tea.', '--session', 'chat', ...shopping)
    const busy = await tallystickHere('run', ...chat, 'Three.')
    expect(busy).toMatchObject({ code: 1 })
    expect(busy.stderr).toContain('Session chat has a run that has not ended')
    expect(busy.stderr).toContain(`tallystick list ${shop.ledgerPath} --session chat\n`)
    const waiting = tallystickHere('run', ...chat, 'Three.', '--wait')
    await tallystickHere('resume', shop.ledgerPath, 'latest', '--yes', ...shopping)
    expect((await waiting).stdout).toContain('Told: One. | Two. | Buy tea. | Three.\n')
  })

  it('holds the run to the limits that it is given, and says how to raise one that suspends it', async () => {
    await using shop = await openShop()
    const limits = ['--limit', 'maxTurns=2', '--limit', 'onLimit=ask']
    const ended = await tallystickHere('run', shop.ledgerPath, 'looker', 'Look.', ...limits, ...hosts)
    expect(ended.code).toBe(0)
    const runId = shownRun(ended)
    const raise = ['raise', shop.ledgerPath, runId, 'maxTurns', '4', '--by', 'you']
    expect(ended.stdout).toContain(
      'The run is suspended at its limit maxTurns of 2, until a command raises it:\n',
    )
    expect(ended.stdout).toContain(`  tallystick ${raise.join(' ')}\n`)
    expect((await tallystickHere(...raise)).code).toBe(0)
    const resumed = await tallystickHere('resume', shop.ledgerPath, runId, '--answer', ...hosts)
    expect(resumed).toMatchObject({ code: 0, stdout: 'Seen.\n' })
    const priced = ['--limit', 'maxCostUsd=0.5', '--limit', 'onLimit=stop']
    const dear = await tallystickHere('run', shop.ledgerPath, 'host', 'Hi.', ...priced, '--json', ...hosts)
    expect(objects(dear.stdout).at(-1)).toMatchObject({ status: 'done', costUsd: 2 })
  })

  it('seals what is said for whose data it is, where there is a keyring', async () => {
    await using shop = await openShop()
    const keys = join(shop.folder, 'keys.db')
    const words = ['run', shop.ledgerPath, 'host', 'Hello there.', '--subject', 'customer-7', ...hosts]
    const refused = await tallystickHere(...words)
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('needs a keyring') })
    expect(existsSync(shop.ledgerPath)).toBe(false)
    sqliteKeyring(keys).close()
    const { FORCE_COLOR: _color, ...environment } = process.env
    const main = fileURLToPath(import.meta.resolve('../src/main.ts'))
    const env = { ...environment, TALLYSTICK_KEYS: keys }
    const sealed = spawnSync(process.execPath, [main, ...words], { encoding: 'utf8', env })
    expect(sealed).toMatchObject({ status: 0, stdout: expect.stringContaining('Told: Hello there.') })
    expect((await tallystickHere('show', shop.ledgerPath, 'latest')).stdout).not.toContain('Hello there.')
    const shown = spawnSync(process.execPath, [main, 'show', shop.ledgerPath, 'latest'], {
      encoding: 'utf8',
      env,
    })
    expect(shown.stdout).toContain('Told: Hello there.')
  })

  it('is a 1 where the run ended without an answer', async () => {
    await using shop = await openShop()
    const failed = await tallystickHere('run', shop.ledgerPath, 'stranger', 'Hi.', ...hosts)
    expect(failed).toMatchObject({ code: 1, stdout: expect.stringContaining('done: model_failed') })
    const words = ['--limit', 'maxTurns=1', '--limit', 'onLimit=stop', ...hosts]
    const limited = await tallystickHere('run', shop.ledgerPath, 'looker', 'Look.', ...words)
    expect(limited).toMatchObject({ code: 1, stdout: expect.stringContaining('done: turn_limit') })
  })

  it('names the agents where the one that is meant is not there, or not named, and makes no ledger then', async () => {
    await using shop = await openShop()
    const tried = async (...words: readonly string[]): Promise<Ending> =>
      tallystickHere('run', shop.ledgerPath, ...words, ...hosts)
    const all = 'The configuration has: host, staller, looker, waiter, stranger.'
    expect(await tried('Hi there.')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`Which agent is meant? ${all}`),
    })
    expect(await tried('hots', 'Hi.')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`There is no agent hots, so nothing was started. ${all}`),
    })
    expect(await tried('host')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('host is an agent.'),
    })
    const empty = join(shop.folder, 'tallystick.config.js')
    await writeFile(empty, 'export default 7')
    expect(await tallystickHere('run', shop.ledgerPath, 'Hi.', '--config', empty)).toMatchObject({ code: 2 })
    expect(existsSync(shop.ledgerPath)).toBe(false)
  })
})

describe('run on a terminal', () => {
  it('asks about each call that waits, with what it would do and why it is asked', async () => {
    await using shop = await openShop()
    const yes = await tallystickAttended(
      { answers: ['what?\n', 'y\n'] },
      'run',
      shop.ledgerPath,
      'Buy tea.',
      ...shopping,
    )
    expect(yes.stderr).toMatch(
      /Approval of pay\nCall: call_\w+\nReason: it is money\nInput: \{\n {2}"usd": 5\n\}\n/,
    )
    expect(yes.stderr).toContain('Run pay with this input? [y]es, [a]lways, [n]o, [l]ater: ')
    expect(yes.stdout).toContain('Payment: 5 USD paid')
    const no = await tallystickAttended(
      { answers: ['no\n', 'too dear\n'] },
      'run',
      shop.ledgerPath,
      'Buy tea.',
      ...shopping,
    )
    expect(no.stdout).toContain('denied this call: too dear')
    const later = await tallystickAttended(
      { answers: ['l\n'] },
      'run',
      shop.ledgerPath,
      'Buy tea.',
      ...shopping,
    )
    expect(later).toMatchObject({ code: 0, stdout: expect.stringContaining('Then this continues it:') })
    const gone = await tallystickAttended(
      { answers: ['\u0004'] },
      'run',
      shop.ledgerPath,
      'Buy tea.',
      ...shopping,
    )
    expect(gone).toMatchObject({ code: 0, stdout: expect.stringContaining('Then this continues it:') })
  })

  it('has colours there, and none elsewhere', async () => {
    await using shop = await openShop()
    const shown = await tallystickAttended({}, 'run', shop.ledgerPath, 'host', 'Hi.', ...hosts)
    expect(shown.stdout).toContain('\u001B[1m> Hi.\u001B[22m')
    const piped = await tallystickHere('run', shop.ledgerPath, 'host', 'Hi.', ...hosts)
    expect(piped.stdout).not.toContain('\u001B')
  })
})

describe('run, when it gets a signal to stop', () => {
  const started = async (shop: Shop, agent: string, part: string): Promise<AtWork> => {
    const run = startTallystick('run', shop.ledgerPath, agent, 'Hi.', '--json', ...hosts)
    await run.says(part)
    return run
  }

  it('ends the run by Ctrl-C: what was said is kept, and the exit code tells of it', async () => {
    await using shop = await openShop()
    const run = await started(shop, 'staller', 'Let me th')
    run.kill('SIGINT')
    const { code, stdout, stderr } = await run.ending
    expect(code).toBe(130)
    expect(stderr).toContain('Cancelling: what was finished is kept.')
    expect(objects(stdout).at(-1)).toMatchObject({ status: 'done', reason: 'cancelled', text: 'Let me th' })
    expect((await tallystickHere('verify', shop.ledgerPath)).code).toBe(0)
  })

  it('stops the run when its process gets SIGTERM, so that resume continues it', async () => {
    await using shop = await openShop()
    const run = await started(shop, 'waiter', 'waiting to be told\n')
    await run.prints((stdout) => stdout.includes('"type":"tool_started"'))
    run.kill('SIGTERM')
    const { code, stdout, stderr } = await run.ending
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Stopping: nothing more'),
    })
    expect(objects(stdout).at(-1)).toMatchObject({ status: 'interrupted', reason: null })
    expect((await tallystickHere('list', shop.ledgerPath)).stdout).toContain('interrupted in turn 1')
  })
})
