// The page over a real ledger, in a real browser, while another process drives its runs.
import { generateKeyPairSync } from 'node:crypto'
import { stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { ReplaySubject } from 'rxjs'
import { createRuntime, defineAgent, type Model } from '@tallystick/core'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { lacksBrowser, useBrowsers, type Browser } from '../../../../scripts/testing/browser.ts'
import { findBarriers } from '../kit/find-barriers.ts'
import { awaitInspector, type Inspector, startInspector } from '../kit/inspector.ts'
import { openShop, shopConfig, type Shop } from '../kit/shop.ts'
import { startTallystickFrom, tallystickHere } from '../kit/tallystick.ts'

const openBrowser = useBrowsers(afterAll)

interface Opened extends AsyncDisposable {
  readonly browser: Browser
  readonly inspector: Inspector
}

/** Opens the page over the ledger of a shop, in a browser. */
async function open(shop: Shop, ...words: readonly string[]): Promise<Opened> {
  const inspector = await startInspector('inspect', shop.ledgerPath, ...words)
  const browser = await openBrowser({ viewport: { width: 1280, height: 800 } })
  await browser.page.goto(inspector.url)
  await browser.page.waitForURL(`${inspector.base}/inspector`)
  return { browser, inspector, [Symbol.asyncDispose]: () => browser[Symbol.asyncDispose]() }
}

const rowsOf = (page: Page) => page.getByRole('navigation', { name: 'Runs' }).getByRole('listitem')

// Needs Chromium: scripts/testing/install-chromium.sh installs it.
describe.skipIf(lacksBrowser)('the page over a ledger', () => {
  it('lists runs, and shows one of them, without a barrier', async () => {
    await using shop = await openShop()
    await shop.start()
    const { runId } = await shop.start()
    await using opened = await open(shop)
    const { page, faults } = opened.browser
    await rowsOf(page).nth(1).waitFor()
    expect(await rowsOf(page).count()).toBe(2)
    await rowsOf(page).first().getByRole('button').click()
    const conversation = page.getByRole('region', { name: 'Conversation' })
    await conversation.getByText('It is "tea" for 5 USD.').waitFor()
    expect(new URL(page.url()).hash).toContain(runId)
    expect(await findBarriers(page)).toEqual([])
    // The address alone leads there, too.
    await page.reload()
    await conversation.getByText('It is "tea" for 5 USD.').waitFor()
    expect(faults).toEqual([])
  })

  it('follows a run that another process drives, from before its beginning to its end', async () => {
    await using shop = await openShop()
    await shop.start()
    await using opened = await open(shop)
    const { page, faults } = opened.browser
    await rowsOf(page).first().waitFor()
    const gate = Promise.withResolvers<string>()
    const ask = testTool({ name: 'ask', run: () => gate.promise })
    const model = scriptedModel([
      { text: 'I ask somebody.', toolCalls: [{ name: 'ask', input: {} }] },
      ({ messages }) => ({
        text: `They say: ${JSON.stringify(messages.at(-1)).includes('Yes') ? 'Yes' : '?'}`,
      }),
    ])
    const agent = defineAgent({ name: 'asker', instructions: '', model, tools: [ask] })
    const ledger = sqliteLedger(shop.ledgerPath)
    await using closing = new AsyncDisposableStack()
    closing.defer(() => ledger.close())
    const run = createRuntime({ ledger }).run(agent, 'Is it so?')
    await rowsOf(page).filter({ hasText: 'asker' }).getByRole('button').click()
    const conversation = page.getByRole('region', { name: 'Conversation' })
    await conversation.getByText('I ask somebody.').waitFor()
    gate.resolve('Yes')
    await conversation.getByText('They say: Yes').waitFor()
    await run.result
    await rowsOf(page).filter({ hasText: 'asker' }).getByRole('img', { name: 'done' }).waitFor()
    expect(faults).toEqual([])
  })

  it('goes on from the record where it is loaded again while a reply streams', async () => {
    await using shop = await openShop()
    await shop.start()
    await using opened = await open(shop)
    const { page, faults } = opened.browser
    await rowsOf(page).first().waitFor()
    const words = ['One. ', 'Two. ', 'Three.']
    const signals$ = new ReplaySubject<ModelSignal>()
    const say = (place: number): void => signals$.next({ type: 'model_text', part: 0, text: words[place]! })
    const model: Model = { ...scriptedModel([]), stream: () => signals$ }
    const agent = defineAgent({ name: 'counter', instructions: '', model })
    const ledger = sqliteLedger(shop.ledgerPath)
    await using closing = new AsyncDisposableStack()
    closing.defer(() => ledger.close())
    const run = createRuntime({ ledger }).run(agent, 'Count.')
    signals$.next({ type: 'model_started' })
    say(0)
    await rowsOf(page).filter({ hasText: 'counter' }).getByRole('button').click()
    const conversation = page.getByRole('region', { name: 'Conversation' })
    await conversation.getByText('One.').waitFor()
    await page.reload()
    await conversation.getByText('One.').waitFor()
    say(1)
    await conversation.getByText('One. Two.').waitFor()
    await page.reload()
    say(2)
    const parts = [{ type: 'text', part: 0, text: words.join('') }] as const
    signals$.next({ type: 'model_finished', stopReason: 'end', parts })
    signals$.complete()
    await conversation.getByText('One. Two. Three.').waitFor()
    await run.result
    await rowsOf(page).filter({ hasText: 'counter' }).getByRole('img', { name: 'done' }).waitFor()
    const shown = await conversation.innerText()
    for (const word of ['Count.', ...words]) expect(shown.split(word.trim())).toHaveLength(2)
    await page.getByRole('tab', { name: 'Events' }).click()
    await page.getByText('run_finished').first().waitFor()
    expect(await page.getByText('assistant_message_finished').count()).toBe(1)
    expect(faults).toEqual([])
  })

  it('shows up to which event a run is signed, and by whom', async () => {
    await using shop = await openShop()
    const { runId, seq } = await shop.start()
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const [key, verifier, out] = ['key.pem', 'key.pub', 'checkpoints'].map((name) => join(shop.folder, name))
    await writeFile(key!, privateKey.export({ type: 'pkcs8', format: 'pem' }))
    await writeFile(verifier!, publicKey.export({ type: 'spki', format: 'pem' }))
    const sign = ['checkpoint', shop.ledgerPath, '--out', out!, '--key', key!, '--origin', 'example.com/shop']
    expect((await tallystickHere(...sign)).code).toBe(0)
    await using opened = await open(shop, '--checkpoints', out!, '--public-key', verifier!)
    const { page, faults } = opened.browser
    await page.goto(`${opened.inspector.base}/inspector#run=${runId}&right=trust`)
    const trust = page.locator('#right-panel')
    await trust.getByText(`✎ signed to event ${seq} of ${seq}`).waitFor()
    await trust.getByText('by example.com/shop').waitFor()
    expect(await findBarriers(page)).toEqual([])
    expect(faults).toEqual([])
  })

  it('follows a run in six tabs, each of which still asks and gets answers', async () => {
    await using shop = await openShop()
    await shop.start()
    await using opened = await open(shop)
    const { browser, inspector } = opened
    const gate = Promise.withResolvers<string>()
    const ask = testTool({ name: 'ask', run: () => gate.promise })
    const model = scriptedModel([
      { text: 'I ask somebody.', toolCalls: [{ name: 'ask', input: {} }] },
      { text: 'They say yes.' },
    ])
    const agent = defineAgent({ name: 'asker', instructions: '', model, tools: [ask] })
    const ledger = sqliteLedger(shop.ledgerPath)
    await using closing = new AsyncDisposableStack()
    closing.defer(() => ledger.close())
    const run = createRuntime({ ledger }).run(agent, 'Is it so?')
    await rowsOf(browser.page).filter({ hasText: 'asker' }).waitFor()
    const tabs = [browser.page]
    while (tabs.length < 6) tabs.push(await browser.openTab())
    for (const tab of tabs) {
      await tab.bringToFront()
      await tab.goto(`${inspector.base}/inspector#run=${run.id}`)
      await tab.getByRole('region', { name: 'Conversation' }).getByText('I ask somebody.').waitFor()
    }
    gate.resolve('Yes')
    await run.result
    for (const tab of tabs) {
      await tab.bringToFront()
      await tab.getByRole('region', { name: 'Conversation' }).getByText('They say yes.').waitFor()
      await rowsOf(tab).filter({ hasText: 'asker' }).getByRole('img', { name: 'done' }).waitFor()
    }
    expect(browser.faults).toEqual([])
  })

  it('only reads, whatever is sent from it', async () => {
    await using shop = await openShop()
    const { runId, pendingApprovals } = await shop.start()
    await using opened = await open(shop, '--config', shopConfig)
    const { page } = opened.browser
    await rowsOf(page).first().waitFor()
    const before = await stat(shop.ledgerPath)
    const answers = await page.evaluate(
      async ({ run, toolCallId }) => {
        const bodies = {
          ...{
            approve: { toolCallId },
            deny: { toolCallId, reason: 'no' },
            withdraw: { standing: toolCallId },
          },
          ...{ cancel: {}, resume: {}, feedback: { score: 1 } },
        }
        const sent = [...Object.entries(bodies).map(([name, body]) => [`${run}/${name}`, body] as const)]
        return await Promise.all(
          [...sent, ['runs', { agent: 'shopper', input: 'Buy tea.' }] as const].map(async ([path, body]) => {
            const headers = { 'content-type': 'application/json' }
            return (await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })).status
          }),
        )
      },
      { run: `runs/${runId}`, toolCallId: pendingApprovals[0]!.toolCallId },
    )
    expect(new Set(answers)).toEqual(new Set([403]))
    await rowsOf(page).first().getByRole('button').click()
    await page.getByText('waits for a decision').waitFor()
    expect(await page.getByRole('button', { name: /^(Decide|Feedback|New run|Cancel)/ }).count()).toBe(0)
    const after = await stat(shop.ledgerPath)
    expect([after.size, after.mtimeMs]).toEqual([before.size, before.mtimeMs])
  })

  it('says that its server is gone, and keeps what it shows', async () => {
    await using shop = await openShop()
    await shop.start()
    await using opened = await open(shop)
    const { page } = opened.browser
    await rowsOf(page).first().getByRole('button').click()
    const conversation = page.getByRole('region', { name: 'Conversation' })
    await conversation.getByText('It is "tea" for 5 USD.').waitFor()
    opened.inspector.work.kill('SIGKILL')
    await page.getByRole('alert').first().waitFor()
    expect(await conversation.getByText('It is "tea" for 5 USD.').count()).toBe(1)
  })

  it('stays open while dev starts its server anew, and shows what the new one records', async () => {
    await using shop = await openShop()
    await symlink(join(import.meta.dirname, '../../node_modules'), join(shop.folder, 'node_modules'))
    const answer = join(shop.folder, 'answer.mjs')
    await writeFile(answer, `export const answer = 'Tea.'\n`)
    await writeFile(
      join(shop.folder, 'tallystick.config.mjs'),
      `import { defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { answer } from './answer.mjs'
const model = scriptedModel([{ text: answer }])
export default { agents: [defineAgent({ name: 'waiter', instructions: '', model })] }
`,
    )
    const { work, url, base } = await awaitInspector(startTallystickFrom(shop.folder, 'dev', 'new.db'))
    onTestFinished(() => work.kill('SIGTERM'))
    await using browser = await openBrowser({ viewport: { width: 1280, height: 800 } })
    const { page } = browser
    await page.goto(url)
    await page.waitForURL(`${base}/inspector`)
    await page.getByText('new.db').first().waitFor()
    await writeFile(answer, `export const answer = 'Coffee.'\n`)
    await work.says('The agents are loaded anew.')
    const status = await page.evaluate(async () => {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify({ agent: 'waiter', input: 'Hello.' })
      return (await fetch('runs', { method: 'POST', headers, body })).status
    })
    expect(status).toBe(201)
    await rowsOf(page).first().getByRole('button').click()
    await page.getByRole('region', { name: 'Conversation' }).getByText('Coffee.').waitFor()
    // Before its files go, which it watches.
    work.kill('SIGTERM')
    expect((await work.ending).code).toBe(0)
  })
})
