// An exported run as a page of its own, in a real browser.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { defineAgent, type Agent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { lacksBrowser, useBrowsers, type Browser } from '../../../../scripts/testing/browser.ts'
import { boss } from '../kit/office.ts'
import { openShop, type Shop } from '../kit/shop.ts'
import { tallystickHere } from '../kit/tallystick.ts'

const openBrowser = useBrowsers(afterAll)

/** Texts that would do something if a page took them for more than texts. */
const hostile = [
  '</script><script>window.pwned = 1</script>',
  '<!--<script>',
  '<img src="https://evil.example/x" onerror="window.pwned = 1">',
  '\u2028\u2029\u202Egnp.exe',
  '\u0000\u001B[31m',
  '\uD800 alone',
  'javascript:alert(1)',
]

/** An agent that everything hostile passes through: its input, its answer, and a tool by name, input, result and error. */
function hostileAgent(): Agent {
  const echo = testTool({ name: 'echo', run: ({ input }) => JSON.stringify(input) })
  const failing = testTool({
    name: 'fail',
    run: () => {
      throw new Error(hostile.join(' '))
    },
  })
  const model = scriptedModel([
    { toolCalls: [{ name: 'echo', input: Object.fromEntries(hostile.map((text) => [text, text])) }] },
    { toolCalls: [{ name: 'fail', input: {} }] },
    { text: hostile.join('\n') },
  ])
  return defineAgent({ name: 'hostile', instructions: hostile.join('\n'), model, tools: [echo, failing] })
}

/** Writes a run as a page, and opens it from the disk. */
async function openExport(shop: Shop, run: string, browser: Browser): Promise<string> {
  const { code, stdout, stderr } = await tallystickHere(
    'export',
    shop.ledgerPath,
    '--run',
    run,
    '--format',
    'html',
  )
  expect([code, stderr]).toEqual([0, ''])
  const path = join(shop.folder, 'run.html')
  await writeFile(path, stdout)
  await browser.page.goto(pathToFileURL(path).href)
  return stdout
}

/** What a browser has, and the types of these tests do not. */
interface DropGlobals {
  readonly DataTransfer: new () => { readonly items: { add(file: unknown): void } }
  readonly DragEvent: new (type: string, options: object) => unknown
  readonly File: new (parts: readonly string[], name: string) => unknown
  readonly document: { readonly body: { dispatchEvent(event: unknown): void } }
}

// Needs Chromium: scripts/testing/install-chromium.sh installs it.
describe.skipIf(lacksBrowser)('a run as a page', () => {
  it('opens without a server, with its child runs', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start(boss())
    await shop.start()
    await using browser = await openBrowser()
    await openExport(shop, runId, browser)
    const runs = browser.page.getByRole('navigation', { name: 'Runs' }).getByRole('button')
    await runs.filter({ hasText: 'clerk' }).waitFor()
    expect(await runs.filter({ hasText: 'boss' }).count()).toBe(1)
    expect(await runs.filter({ hasText: 'shopper' }).count()).toBe(0)
    // There is no server that would make cases.
    expect(await browser.page.getByRole('button', { name: 'Cases…' }).count()).toBe(0)
    await runs.filter({ hasText: 'clerk' }).click()
    await browser.page.getByRole('tab', { name: 'Events' }).click()
    await browser.page.getByText('approval_requested').first().waitFor()
    await browser.page.getByRole('tab', { name: 'Trust' }).click()
    await browser.page.getByText(/✓ verified to event \d+ of \d+/).waitFor()
    await browser.page.getByText('↧ Imported').waitFor()
    expect(browser.faults).toEqual([])
  })

  it('shows hostile texts as texts, and asks nobody for anything', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start(hostileAgent())
    await using browser = await openBrowser()
    const asked: string[] = []
    browser.page.on('request', (request) => void asked.push(request.url()))
    const html = await openExport(shop, runId, browser)
    expect(html).not.toContain('<script>window.pwned')
    const { page } = browser
    await page
      .getByRole('navigation', { name: 'Runs' })
      .getByRole('button')
      .filter({ hasText: 'hostile' })
      .click()
    await page.getByText('window.pwned = 1').first().waitFor()
    expect(await page.evaluate(() => Reflect.get(globalThis, 'pwned') as unknown)).toBe(undefined)
    expect(asked.filter((url) => !/^(file|blob|data):/.test(url))).toEqual([])
    expect(browser.faults).toEqual([])
  })

  it('has nothing of what was removed from the ledger', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const words = ['redact', shop.ledgerPath, runId, '--events', '1-18', '--reason', 'a ticket']
    expect((await tallystickHere(...words)).code).toBe(0)
    const { stdout } = await tallystickHere('export', shop.ledgerPath, '--run', runId, '--format', 'html')
    expect(stdout).toContain('run_started')
    expect(stdout).not.toContain('Buy tea.')
  })

  it('is refused where it is no use', async () => {
    await using shop = await openShop()
    await shop.start()
    const all = await tallystickHere('export', shop.ledgerPath, '--format', 'html')
    expect([all.code, all.stderr]).toEqual([
      2,
      expect.stringContaining('--run latest --format html > run.html'),
    ])
    const none = await tallystickHere('export', shop.ledgerPath, '--run', 'none', '--format', 'html')
    expect([none.code, none.stdout]).toEqual([5, ''])
  })

  it('is taken when its lines are dropped on a page, and refused with the line that is wrong', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const { stdout } = await tallystickHere('export', shop.ledgerPath, '--run', runId)
    await using browser = await openBrowser({ viewport: { width: 1280, height: 800 } })
    const { page, faults } = browser
    const other = await shop.start()
    await openExport(shop, other.runId, browser)
    const drop = (name: string, text: string): Promise<void> =>
      page.evaluate(
        ([file, lines]) => {
          const { DataTransfer, DragEvent, File, document } = globalThis as unknown as DropGlobals
          const dataTransfer = new DataTransfer()
          dataTransfer.items.add(new File([lines], file))
          document.body.dispatchEvent(
            new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }),
          )
        },
        [name, text] as const,
      )
    const list = page.getByRole('navigation', { name: 'Runs' })
    await drop('broken.jsonl', `${stdout.split('\n')[0]}\n{`)
    await list.getByRole('alert').getByText('Line 2 is not JSON').waitFor()
    await drop('other.jsonl', stdout)
    await page.getByRole('heading', { name: 'other.jsonl' }).waitFor()
    await list.getByRole('listitem').first().getByRole('button').click()
    await page.getByRole('region', { name: 'Conversation' }).getByText('It is "tea" for 5 USD.').waitFor()
    expect(new URL(page.url()).hash).toContain(runId)
    expect(faults).toEqual([])
  })
})
