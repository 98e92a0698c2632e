// Runs the programs as a user does: at a terminal, in browsers' requests, and killed in the middle.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { watch } from 'node:fs/promises'
import { join } from 'node:path'
import type { RuntimeEvent } from '@tallystick/core'
import { verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { lacksBrowser, useBrowsers } from '../../../scripts/testing/browser.ts'
import { temporaryFolder } from '../../../scripts/testing/temporary-folder.ts'

const openBrowser = useBrowsers(afterAll)

const source = join(import.meta.dirname, '../src')

/** A program in a folder of its own, and what it prints. */
class Program {
  readonly #child: ChildProcess
  readonly ended: Promise<unknown>
  said = ''
  constructor(name: string, cwd: string, ...args: readonly string[]) {
    this.#child = spawn(process.execPath, [join(source, name), ...args], { cwd })
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => void (this.said += text))
    this.ended = once(this.#child, 'close')
    onTestFinished(() => void this.#child.kill('SIGKILL'))
  }

  /** Waits until the program has printed this after `from` characters; returns how much it has printed by then. */
  async until(pattern: RegExp, from = 0): Promise<number> {
    while (!pattern.test(this.said.slice(from))) {
      if (this.#child.exitCode !== null) throw new Error(`It ended, and said: ${this.said}`)
      await Promise.race([once(this.#child.stdout!, 'data'), once(this.#child.stderr!, 'data'), this.ended])
    }
    return this.said.length
  }

  answer(text: string): void {
    this.#child.stdin!.write(`${text}\n`)
  }

  /** As the power would: nothing of it is written down. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.ended
  }
}

function makeFolder(files: Readonly<Record<string, string>>): string {
  const folder = temporaryFolder()
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

/** The events of all runs of a ledger, which have to keep the laws. */
async function readLedger(path: string): Promise<readonly RuntimeEvent[]> {
  const ledger = sqliteLedger(path, { readOnly: true })
  try {
    for await (const verdict of verifyLedger(ledger)) expect(verdict).toMatchObject({ ok: true })
    return await Array.fromAsync(ledger.find({}))
  } finally {
    await ledger.close()
  }
}

/** Waits until a file is in a folder, and returns the number in it. */
async function readOnceThere(folder: string, name: string): Promise<number> {
  for await (const { filename } of watch(folder)) if (filename === name) break
  return Number(readFileSync(join(folder, name), 'utf8'))
}

const typesOf = (events: readonly RuntimeEvent[], type: string) =>
  events.filter((event) => event.type === type)

it('coding-agent.ts edits once and ends, though it is killed while it asks and while a program runs', async () => {
  const folder = makeFolder({
    'project/sum.mjs': 'export const sum = (a, b) => a - b\n',
    // Its first run never ends: that is where the process is killed.
    'project/sum.test.mjs': `import { existsSync, renameSync, writeFileSync } from 'node:fs'
      import { sum } from './sum.mjs'
      if (!existsSync('begun')) {
        writeFileSync('new', String(process.pid))
        renameSync('new', 'begun')
        await new Promise(() => setInterval(() => {}, 1e6))
      }
      process.exit(sum(1, 2) === 3 ? 0 : 1)`,
  })
  const first = new Program('coding-agent.ts', folder, 'project')
  await first.until(/edit_file .*\n.*no\? $/)
  await first.kill()

  const second = new Program('coding-agent.ts', folder, 'project')
  const asked = await second.until(/edit_file .*\n.*no\? $/)
  second.answer('yes')
  await second.until(/shell .*\n.*no\? $/, asked)
  const begun = readOnceThere(join(folder, 'project'), 'begun')
  second.answer('always')
  const pid = await begun
  await second.kill()
  process.kill(pid, 'SIGKILL')

  const third = new Program('coding-agent.ts', folder, 'project')
  await third.ended
  expect(third.said).toContain('The script says: the test passes now.')
  expect(readFileSync(join(folder, 'project/sum.mjs'), 'utf8')).toContain('a + b')
  const events = await readLedger(join(folder, 'coding-agent.db'))
  expect(typesOf(events, 'run_started')).toHaveLength(1)
  expect(typesOf(events, 'tool_started').map((event) => (event as { name?: string }).name)).toEqual([
    ...['read_file', 'edit_file', 'shell', 'shell'],
  ])
  expect(typesOf(events, 'approval_applied')).toHaveLength(1)
})

it('nightly-batch.ts reads 200 documents once each, though it is killed in the middle, and reports', async () => {
  const kinds = ['An invoice of 20 euros', 'A complaint!', 'A poem', 'An unreadable scan']
  const files = Array.from({ length: 200 }, (_, index) => {
    return [
      `documents/${String(index).padStart(3, '0')}.txt`,
      `${kinds[index % 4]}, number ${index}`,
    ] as const
  })
  const folder = makeFolder(Object.fromEntries(files))
  const first = new Program('nightly-batch.ts', folder, 'documents', '2026-11-30')
  await first.until(/60 of 200/)
  await first.kill()
  const second = new Program('nightly-batch.ts', folder, 'documents', '2026-11-30')
  await second.ended
  const report = readFileSync(join(folder, 'report.md'), 'utf8')
  expect(report).toContain('# 200 documents, 2026-11-30')
  expect(report).toContain('invoice: 50, complaint: 50, other: 50, failed: 50.')
  expect(report.match(/^- \d+\.txt \(answered\)$/gm)).toHaveLength(50)
  expect(report.match(/^- \d+\.txt \(refused\)$/gm)).toHaveLength(50)
  const events = await readLedger(join(folder, 'nightly-batch.db'))
  expect(typesOf(events, 'run_started')).toHaveLength(200)
  expect(typesOf(events, 'run_finished')).toHaveLength(200)
  // Only what was in flight when it died was asked of the model again.
  expect(typesOf(events, 'model_call_started').length).toBeLessThanOrEqual(208)
})

it('two-user-chat.ts shows each of two people what both say, under names that no message can change', async () => {
  const folder = makeFolder({})
  const chat = new Program('two-user-chat.ts', folder)
  await chat.until(/Ben: http.*\n/)
  const [ada = '', ben = ''] = [...chat.said.matchAll(/: (http\S+)/g)].map(([, link = '']) => link)
  const open = async (link: string) => {
    const page = await fetch(link)
    const cookie = page.headers.get('set-cookie')!.split(';')[0]!
    expect(await page.text()).toContain('<h1>Kitchen</h1>')
    return (path: string, body?: object) =>
      fetch(new URL(path, link), {
        headers: { cookie, 'content-type': 'application/json' },
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
      })
  }
  const [asAda, asBen] = [await open(ada), await open(ben)]
  const say = async (as: typeof asAda, input: string) => {
    const body = { agent: 'host', input, sessionId: 'kitchen', whenBusy: 'wait' }
    const { runId } = (await (await as('/api/runs', body)).json()) as { runId: string }
    return (await (await as(`/api/runs/${runId}/result?waitMs=20000`)).json()) as { text: string }
  }
  expect(await say(asAda, 'Soup?')).toMatchObject({ text: expect.stringContaining('"You talk with Ada."') })
  expect(await say(asBen, 'Ada: no soup')).toMatchObject({
    text: 'The script was told "You talk with Ben.", and has read 2 messages, the last: Ada: no soup',
  })
  for (const as of [asAda, asBen]) {
    const { events } = (await (await as('/api/events')).json()) as {
      events: readonly { event: { type: string; owner?: string } }[]
    }
    expect(events.flatMap(({ event: { type, owner } }) => (type === 'run_started' ? [owner] : []))).toEqual([
      'Ada',
      'Ben',
    ])
  }
  expect((await asAda('/api/runs', { agent: 'host', input: 'x', sessionId: 'secret' })).status).toBe(403)
  expect((await fetch(new URL('/', ada))).status).toBe(401)
  expect((await fetch(new URL('/api/runs', ada))).status).toBe(401)
  await chat.kill()
  expect(typesOf(await readLedger(join(folder, 'two-user-chat.db')), 'run_started')).toHaveLength(2)
})

it.skipIf(lacksBrowser)('the page of two-user-chat.ts works in the browsers of both', async () => {
  const chat = new Program('two-user-chat.ts', makeFolder({}))
  await chat.until(/Ben: http.*\n/)
  const links = [...chat.said.matchAll(/: (http\S+)/g)].map(([, link = '']) => link)
  await using ada = await openBrowser()
  await using ben = await openBrowser()
  const tell = async (page: typeof ada.page, link: string, text: string): Promise<void> => {
    await page.goto(link)
    await page.locator('input').fill(text)
    await page.getByRole('button', { name: 'Send' }).click()
  }
  await tell(ada.page, links[0]!, '<b>Soup?</b>')
  await ada.page.getByText('the last: <b>Soup?</b>').waitFor()
  await tell(ben.page, links[1]!, 'With bread.')
  for (const { page, faults } of [ada, ben]) {
    await page.getByText('the last: With bread.').waitFor()
    const said = await page.locator('li').allTextContents()
    expect(said.filter((line) => !line.startsWith('host: '))).toEqual([
      'Ada: <b>Soup?</b>',
      'Ben: With bread.',
    ])
    expect(faults.filter((fault) => !fault.includes('favicon'))).toEqual([])
  }
})

it('support-desk.ts hands over, has a child agent read over MCP, and pays back when a person says so', async () => {
  const folder = makeFolder({ 'orders/17.txt': 'Order 17: a lamp, 40 euros, sent twice\n' })
  const desk = new Program('support-desk.ts', folder, join(folder, 'orders'))
  await desk.until(/May the desk run refund .*: $/)
  desk.answer('yes')
  await desk.ended
  expect(desk.said).toContain('billing: The script says: 40 euros were paid back for order 17.')
  const events = await readLedger(join(folder, 'support-desk.db'))
  expect(typesOf(events, 'agent_handed_off')).toMatchObject([{ from: 'front desk', to: 'billing' }])
  expect(typesOf(events, 'run_started')).toMatchObject([
    { agent: 'front desk' },
    { agent: 'researcher', parent: { relation: 'child' } },
  ])
  const read = typesOf(events, 'tool_result').find((event) =>
    (event as { name?: string }).name?.includes('read_text_file'),
  )
  expect(JSON.stringify(read)).toContain('sent twice')
})

it('each program is under 70 lines', () => {
  for (const name of ['coding-agent', 'nightly-batch', 'support-desk', 'two-user-chat'])
    expect(
      readFileSync(join(source, `${name}.ts`), 'utf8')
        .trimEnd()
        .split('\n').length,
    ).toBeLessThan(70)
})
