// What the page does beside reading, in a real browser: by the keyboard alone, and with each way to change a run.
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, it } from 'vitest'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import type { RunId, RuntimeEvent } from '@tallystick/core'
import { lacksBrowser, useBrowsers } from '../../../../scripts/testing/browser.ts'
import { findBarriers } from '../kit/find-barriers.ts'
import { startInspector } from '../kit/inspector.ts'
import { openShop, shopAgent, shopConfig } from '../kit/shop.ts'
import { tallystickHere } from '../kit/tallystick.ts'

const openBrowser = useBrowsers(afterAll)

async function readEvents(ledgerPath: string, runId: string): Promise<readonly RuntimeEvent[]> {
  const ledger = sqliteLedger(ledgerPath, { readOnly: true })
  try {
    return await Array.fromAsync(ledger.read(runId as RunId))
  } finally {
    await ledger.close()
  }
}

/** Presses Tab until an element has the focus whose name begins so. */
async function tabTo(page: Page, name: string): Promise<void> {
  const reached: string[] = []
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate(() => {
      const { document } = globalThis as unknown as {
        document: { activeElement: { textContent: string } | null }
      }
      return document.activeElement?.textContent ?? ''
    })
    if (focused.startsWith(name)) return
    reached.push(focused.slice(0, 20))
  }
  throw new Error(`Tab does not reach ${name}. It reaches: ${reached.join(', ')}`)
}

const runIdOf = (page: Page): string =>
  new URLSearchParams(new URL(page.url()).hash.slice(1)).get('run') ?? ''

describe.skipIf(lacksBrowser)('the page, where it may change runs', () => {
  it('finds a run, moves through it and approves its call by the keyboard alone', async () => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const words = ['--allow', 'decisions', '--config', shopConfig]
    const inspector = await startInspector('inspect', shop.ledgerPath, ...words)
    await using browser = await openBrowser({ viewport: { width: 1280, height: 800 } })
    const { page, faults } = browser
    await page.goto(inspector.url)
    await page.getByRole('navigation', { name: 'Runs' }).getByRole('listitem').first().waitFor()
    await tabTo(page, '◐')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Decide…' }).waitFor()
    const place = (): string => new URL(page.url()).hash
    await page.keyboard.press('Home')
    await expect.poll(place).toContain('at=1')
    await page.keyboard.press('ArrowRight')
    await expect.poll(place).toContain('at=2')
    await page.keyboard.press(']')
    await page
      .getByRole('region', { name: 'State' })
      .getByText('streaming', { exact: true })
      .first()
      .waitFor()
    await page.keyboard.press('End')
    await expect.poll(place).not.toContain('at=')
    await tabTo(page, 'Decide…')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await tabTo(page, 'Approve')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByText('answered').first().waitFor()
    const events = await readEvents(shop.ledgerPath, runId)
    expect(events.find(({ type }) => type === 'approval_decided')).toMatchObject({
      approved: true,
      via: 'http',
    })
    expect(faults).toEqual([])
  })

  it('denies, edits, gives feedback, lets an approval stand, makes cases, and forks beside the original', async () => {
    await using shop = await openShop()
    const denied = await shop.start()
    const edited = await shop.start()
    const words = ['--allow', 'decisions,feedback,forks,starts', '--config', shopConfig]
    const inspector = await startInspector('inspect', shop.ledgerPath, ...words)
    await using browser = await openBrowser({ viewport: { width: 1280, height: 800 } })
    const { page, faults } = browser
    await page.goto(inspector.url)
    await page.waitForURL(`${inspector.base}/inspector`)
    const openRun = async (runId: string, more = ''): Promise<void> => {
      await page.goto(`${inspector.base}/inspector#run=${runId}${more}`)
      await page.getByRole('region', { name: 'Conversation' }).getByText('tea').first().waitFor()
    }
    const startRun = async (sessionId: string): Promise<void> => {
      const before = runIdOf(page)
      await page.getByRole('button', { name: 'New run' }).click()
      await page.getByLabel('Message').fill('Buy tea.')
      await page.getByRole('dialog').getByLabel('Session').fill(sessionId)
      await page.getByRole('button', { name: 'Start', exact: true }).click()
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await page.waitForURL((url) => !url.hash.includes(before))
      await page.getByRole('region', { name: 'Conversation' }).getByText('Buy tea.').first().waitFor()
    }

    await openRun(denied.runId)
    await page.getByRole('button', { name: 'Decide…' }).click()
    const deny = page.getByRole('button', { name: 'Deny' })
    expect(await deny.isDisabled()).toBe(true)
    await page.getByLabel('Reason').fill('Too dear.')
    await deny.click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const events = await readEvents(shop.ledgerPath, denied.runId)
    expect(events.find(({ type }) => type === 'approval_decided')).toMatchObject({
      approved: false,
      reason: 'Too dear.',
    })

    await openRun(edited.runId)
    await page.getByRole('button', { name: 'Decide…' }).click()
    await page.getByRole('button', { name: 'Change it' }).click()
    const input = page.getByLabel('Input that runs instead')
    const given = JSON.parse(await input.inputValue()) as object
    await input.fill('{"item":')
    expect(await page.getByRole('button', { name: 'Approve with this input' }).isDisabled()).toBe(true)
    await input.fill(JSON.stringify({ ...given, usd: 3 }))
    await page.getByRole('button', { name: 'Approve with this input' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const decided = (await readEvents(shop.ledgerPath, edited.runId)).find(
      ({ type }) => type === 'approval_decided',
    )
    expect(decided).toMatchObject({ input: { usd: 3 } })

    await page.getByRole('button', { name: 'Feedback…' }).click()
    await page.getByLabel('Score').fill('0,5')
    await page.getByLabel('Note').fill('Cheap\u202E.')
    expect(await page.getByRole('button', { name: 'Give feedback' }).isDisabled()).toBe(true)
    await page.getByLabel('Score').fill('0.5')
    await page.getByRole('button', { name: 'Give feedback' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByRole('region', { name: 'Conversation' }).getByText('Cheap⟨U+202E⟩.').waitFor()
    expect((await readEvents(shop.ledgerPath, edited.runId)).at(-1)).toMatchObject({
      type: 'feedback_given',
      score: 0.5,
    })
    await page.getByRole('button', { name: 'More filters' }).click()
    await page.getByLabel('Score to').fill('0.5')
    await page.getByLabel('Score to').press('Enter')
    const rows = page.getByRole('navigation', { name: 'Runs' }).locator('.list li')
    await expect.poll(() => rows.count()).toBe(1)
    await rows.getByText('★ 0.5').waitFor()
    await page.getByRole('button', { name: 'Clear all' }).click()
    await page.getByRole('button', { name: 'Fewer filters' }).click()

    const march = await shop.start(shopAgent(), { sessionId: 'march' })
    await openRun(march.runId)
    await page.getByRole('button', { name: 'Decide…' }).click()
    await page.getByLabel('Also all later calls of pay').check()
    await page.getByRole('combobox', { name: /^For/ }).selectOption('8 hours')
    expect(await findBarriers(page)).toEqual([])
    await page.getByRole('button', { name: 'Approve', exact: true }).click()
    await page.getByText('Payment: 5 USD paid').first().waitFor()
    await startRun('march')
    await page.getByText('Payment: 5 USD paid').first().waitFor()
    await page.getByRole('tab', { name: 'Call' }).click()
    const standing = page.locator('.standing')
    await standing.getByText('in an earlier run of the session').waitFor()
    await standing.getByText('It let through in this run:').waitFor()
    await standing.getByRole('button', { name: 'Look into the other runs of the session' }).click()
    await standing.getByText(`It let no call of run …${march.runId.slice(-8)} through.`).waitFor()
    await standing.getByRole('button', { name: 'Withdraw…' }).click()
    await page.getByLabel('Reason').fill('Enough.')
    await page.getByRole('button', { name: 'Withdraw', exact: true }).click()
    await standing.getByText('withdrawn, in a new run of the session').waitFor()
    expect(await findBarriers(page)).toEqual([])
    const ledger = sqliteLedger(shop.ledgerPath, { readOnly: true })
    await using closing = new AsyncDisposableStack()
    closing.defer(() => ledger.close())
    expect(await Array.fromAsync(ledger.find({ types: ['session_edited'] }))).toMatchObject([
      { edit: 'withdraw', reason: 'Enough.', standing: march.pendingApprovals[0]!.toolCallId },
    ])

    const saveCases = async (): Promise<string> => {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Save cases.jsonl' }).click(),
      ])
      await page.getByRole('button', { name: 'Close' }).click()
      return await readFile(await download.path(), 'utf8')
    }
    const dataset = async (...words: readonly string[]): Promise<string> =>
      (await tallystickHere('dataset', shop.ledgerPath, ...words)).stdout
    await openRun(edited.runId)
    await page.getByRole('button', { name: 'As case…' }).click()
    expect(await saveCases()).toBe(await dataset('--run', edited.runId))
    await page.getByRole('button', { name: 'Cases…', exact: true }).click()
    await page.goto(`${inspector.base}/inspector#run=${edited.runId}&session=march`)
    await expect.poll(() => rows.count()).toBe(3)
    for (const place of [1, 2]) await rows.nth(place).getByRole('checkbox').check()
    await page.getByRole('button', { name: 'Take 2…' }).click()
    expect((await saveCases()).split('\n')).toHaveLength(3)
    for (const place of [1, 2]) await rows.nth(place).getByRole('checkbox').uncheck()
    await page.getByRole('button', { name: 'Take all…' }).click()
    await page.getByText('2 cases. 1 run left out: it has no input.').waitFor()
    await page.getByText('tallystick dataset runs.db --where session=march').waitFor({ state: 'attached' })
    expect(await findBarriers(page)).toEqual([])
    expect(await saveCases()).toBe(await dataset('--where', 'session=march'))
    await page.getByRole('button', { name: 'Cancel', exact: true }).click()

    await openRun(edited.runId, '&at=2')
    await page.getByRole('button', { name: 'Fork at 2…' }).click()
    await page.getByLabel(`The user's message`).fill('Buy coffee.')
    await page.getByRole('dialog').getByRole('button', { name: 'Fork', exact: true }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const forkId = runIdOf(page)
    expect(forkId).not.toBe(edited.runId)
    await page.getByRole('region', { name: 'Conversation' }).getByText('Buy coffee.').waitFor()
    const [first] = await readEvents(shop.ledgerPath, forkId)
    expect(first).toMatchObject({ parent: { runId: edited.runId, relation: 'fork', writes: 'stub' } })

    await startRun('')
    expect([edited.runId, denied.runId, forkId]).not.toContain(runIdOf(page))
    expect(faults).toEqual([])
  })
})
