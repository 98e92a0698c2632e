// The overview of the page, over a ledger whose runs began in different hours.
import { afterAll, describe, expect, it } from 'vitest'
import { agentTool, createRuntime, defineAgent, type Agent } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { lacksBrowser, useBrowsers } from '../../../../scripts/testing/browser.ts'
import { startInspector } from '../kit/inspector.ts'
import { openShop, shopAgent } from '../kit/shop.ts'

const openBrowser = useBrowsers(afterAll)

const hourMs = 3_600_000

/** An agent whose work a child run does. */
function manager(): Agent {
  const clerk = defineAgent({
    ...{ name: 'clerk', description: 'Looks.', instructions: '' },
    model: scriptedModel([{ text: 'Nothing.' }]),
  })
  return defineAgent({
    ...{ name: 'manager', instructions: '', tools: [agentTool(clerk)] },
    model: scriptedModel([{ toolCalls: [{ name: 'clerk', input: { task: 'Look.' } }] }, { text: 'Done.' }]),
  })
}

/** An agent that goes on for ever, and is stopped after a turn. */
function looper(): Agent {
  return defineAgent({
    ...{ name: 'looper', instructions: '', limits: { maxTurns: 1, onLimit: 'stop' } },
    model: scriptedModel([{ toolCalls: [{ name: 'look', input: {} }] }]),
    tools: [testTool({ name: 'look', run: () => 'nothing' })],
  })
}

describe.skipIf(lacksBrowser)('the overview', () => {
  it('opens exactly the runs of a bar, and those of a reason', async () => {
    await using shop = await openShop()
    const now = Date.UTC(2026, 0, 5, 12)
    const begun = now - 3 * hourMs
    const ledger = sqliteLedger(shop.ledgerPath)
    await using closing = new AsyncDisposableStack()
    closing.defer(() => ledger.close())
    const start = async (agent: Agent, at: number): Promise<string> =>
      (await createRuntime({ ledger, host: { clock: manualClock(at) } }).run(agent, 'Go.').result).runId
    const managed = await start(manager(), begun)
    const looped = await start(looper(), begun + hourMs - 1)
    await start(looper(), begun - 1)
    await start(shopAgent(), begun + hourMs)

    const inspector = await startInspector('inspect', shop.ledgerPath)
    await using browser = await openBrowser({ viewport: { width: 1280, height: 800 } })
    const { page, faults } = browser
    await page.clock.setFixedTime(now)
    await page.goto(inspector.url)
    const rows = page.getByRole('navigation', { name: 'Runs' }).locator('.list li')
    await rows.nth(4).waitFor()
    // The table says the same as the bars, which a test cannot point at.
    await page.getByText('The numbers').click()
    await page.locator('.numbers tbody button').nth(1).click()
    await expect.poll(() => rows.count()).toBe(2)
    await page.waitForURL(({ hash }) => hash.includes(`since=${begun}&until=${begun + hourMs}`))
    for (const [place, run] of [looped, managed].entries()) {
      await rows.nth(place).getByRole('button').click()
      await page.waitForURL((url) => url.hash.includes(run))
      await page.goBack()
    }
    await page.getByRole('region', { name: 'Failures by reason' }).getByRole('button').click()
    await expect.poll(() => rows.filter({ hasText: 'looper' }).count()).toBe(2)
    expect(await rows.count()).toBe(2)
    // From a child run the page leads to the run whose call it does.
    await page.getByRole('button', { name: 'Clear all' }).click()
    await rows.filter({ hasText: '↳ clerk' }).getByRole('button').click()
    await page.getByRole('button', { name: 'does a call of' }).click()
    await page.waitForURL(({ hash }) => hash.includes(managed))
    expect(faults).toEqual([])
  })
})
