import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createProcessContext, type CommandContext } from '../src/command/context.ts'
import { formatBytes, withProgress } from '../src/command/progress.ts'
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

/** A place to run in, whose clock the test sets, and everything that is written in it, in order. */
function place(isTerminal: boolean) {
  const stream = () => Object.assign(new PassThrough(), { isTTY: false })
  const written: string[] = []
  const clock = { now: 0 }
  const context: CommandContext = {
    ...createProcessContext(false, {
      ...{ env: {}, cwd: () => '/', stdin: stream() as never, stdout: stream(), stderr: stream() },
    }),
    now: () => clock.now,
    say: (line) => void written.push(`say ${line}`),
    print: async (text) => void written.push(`print ${text}`),
    ...(isTerminal && { progress: (text: string) => void written.push(text) }),
  }
  return { context, written, clock }
}

describe('the line that says how far work is', () => {
  it('is written at once, and then every tenth of a second at most', async () => {
    const { context, written, clock } = place(true)
    const result = await withProgress(
      context,
      async () => 9,
      async ({ add }) => {
        for (const now of [0, 99, 100, 150, 199, 200]) {
          clock.now = now
          add(1)
        }
        return 'done'
      },
    )
    expect(result).toBe('done')
    expect(written).toEqual(['1 of 9 events', '3 of 9 events', '6 of 9 events', ''])
  })

  it('goes away before anything else is written, and comes back after it', async () => {
    const { context, written, clock } = place(true)
    await withProgress(
      context,
      async () => 1,
      async ({ add, context: aside }) => {
        aside.say('before')
        add(1)
        aside.say('between')
        aside.say('again')
        clock.now = 100
        add(0)
        await aside.print('data')
      },
    )
    expect(written).toEqual([
      ...['say before', '1 of 1 event', '', 'say between', 'say again', '1 of 1 event', '', 'print data'],
    ])
  })

  it('goes away where the work fails, and tells no total that cannot be counted', async () => {
    const { context, written } = place(true)
    const failing = withProgress(
      context,
      () => Promise.reject(new Error('damaged')),
      ({ add }) => {
        add(2)
        return Promise.reject(new Error('the work'))
      },
    )
    await expect(failing).rejects.toThrow('the work')
    expect(written).toEqual(['2 events', ''])
  })

  it('is written nowhere but on a terminal, where nothing is counted for it', async () => {
    const { context, written } = place(false)
    let isCounted = false
    const count = async () => ((isCounted = true), 9)
    const result = await withProgress(context, count, async (progress) => {
      progress.add(1)
      return progress.context
    })
    expect([result === context, isCounted, written]).toEqual([true, false, []])
  })

  it('tells bytes in megabytes', async () => {
    const { context, written } = place(true)
    await withProgress(
      context,
      async () => 2_500_000,
      async ({ add }) => add(1_250_000),
      formatBytes,
    )
    await withProgress(
      context,
      async () => undefined,
      async ({ add }) => add(40_000),
      formatBytes,
    )
    expect(written).toEqual(['1.3 of 2.5 MB', '', '0.0 MB', ''])
  })
})
