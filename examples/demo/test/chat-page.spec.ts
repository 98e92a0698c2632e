// The page of `demo --serve`. In a browser where this machine has one: scripts/testing/install-chromium.sh installs it.
// SCREENSHOT=docs/chat-page.png writes the picture of the README.
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, it } from 'vitest'
import { openBench } from './bench.ts'
import { lacksBrowser, useBrowsers } from '../../../scripts/testing/browser.ts'
import { startDemo } from './program.ts'

const openBrowser = useBrowsers(afterAll)

/** The page in a browser, and what it can order from. */
interface OpenedPage extends AsyncDisposable {
  readonly bench: Awaited<ReturnType<typeof openBench>>
  readonly page: Page
  /** What the browser reported. */
  readonly faults: readonly string[]
  /** The address of the page, with the token. */
  readonly address: string
}

/** Serves the demo, opens its page and sends the question that it begins with, after `before`. */
async function openAndSend(before?: (page: Page) => Promise<void>): Promise<OpenedPage> {
  await using opening = new AsyncDisposableStack()
  const bench = opening.use(await openBench())
  const demo = opening.use(await startDemo(['--serve', '--ledger', bench.ledgerPath]))
  const { page, faults } = opening.use(await openBrowser())
  const address = await demo.firstLine
  await page.goto(address)
  expect(page.url()).not.toContain('token')
  await before?.(page)
  await page.getByRole('button', { name: 'Send' }).click()
  const opened = opening.move()
  return { bench, page, faults, address, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

/** Clicks Stop within the page, once a call shows: from outside, a busy machine may click after the answer has ended. */
async function stopAtFirstCall(page: Page): Promise<void> {
  await page.evaluate(`new MutationObserver((_, observer) => {
    const button = [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Stop')
    if (!button || !document.querySelector('section[aria-label=sql_query]')) return
    observer.disconnect()
    button.click()
  }).observe(document.body, { childList: true, subtree: true })`)
}

/** The token of an address, as a request carries it. */
function tokenOf(address: string): { readonly authorization: string } {
  return { authorization: `Bearer ${new URLSearchParams(new URL(address).hash.slice(1)).get('token')}` }
}

/** Holds the requests of a page for its chat; returns what lets them go. */
async function holdChat(page: Page): Promise<{ readonly asked: Promise<void>; readonly letGo: () => void }> {
  const [asked, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await page.route(/\/chat\/[^/]+\/[^/]+$/, async (route) => {
    asked.resolve()
    await gate.promise
    await route.continue()
  })
  return { asked: asked.promise, letGo: gate.resolve }
}

/** The runs of the demo, the newest first. */
async function runsOf(
  address: string,
): Promise<readonly { readonly runId: string; readonly reason?: string }[]> {
  const listed = await fetch(`${new URL(address).origin}/runs`, { headers: tokenOf(address) })
  return ((await listed.json()) as { readonly runs: readonly { readonly runId: string }[] }).runs
}

/** Approves the one call that a run of the demo asks about, as another client does, and resolves when the run has ended. */
async function approveElsewhere(address: string): Promise<void> {
  const { origin } = new URL(address)
  const headers = tokenOf(address)
  const listed = await fetch(`${origin}/runs`, { headers })
  const [run] = ((await listed.json()) as { readonly runs: readonly { readonly runId: string }[] }).runs
  const path = `${origin}/runs/${run?.runId}`
  const { pendingApprovals } = (await (await fetch(path, { headers })).json()) as {
    readonly pendingApprovals: readonly { readonly toolCallId: string }[]
  }
  const body = JSON.stringify({ toolCallId: pendingApprovals[0]?.toolCallId })
  const posted = { 'content-type': 'application/json', ...headers }
  const approved = await fetch(`${path}/approve`, { method: 'POST', headers: posted, body })
  expect(approved.ok).toBe(true)
  // To its end: the run's.
  await (await fetch(`${path}/events`, { headers: { accept: 'text/event-stream', ...headers } })).text()
}

describe('the page of the demo', () => {
  it('is there for everyone on this machine, and the agent for those with the token', async () => {
    await using bench = await openBench()
    await using demo = await startDemo(['--serve', '--ledger', bench.ledgerPath])
    const address = await demo.firstLine
    const { origin } = new URL(address)
    const page = await fetch(origin)
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'/)
    expect(await page.text()).toContain('<script type="module" src="/chat.js">')
    expect((await fetch(`${origin}/chat.css`)).headers.get('content-type')).toBe('text/css; charset=utf-8')
    expect((await fetch(`${origin}/agents`)).status).toBe(401)
    expect((await fetch(origin, { method: 'POST' })).status).toBe(401)
    expect((await fetch(`${origin}/agents`, { headers: tokenOf(address) })).status).toBe(200)
    expect(await demo.stop()).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Stopping') as string,
    })
  })

  // Needs Chromium: the head of this file says how to get it.
  it.skipIf(lacksBrowser)(
    'answers live, asks before the order, and shows the same after it is loaded anew',
    async () => {
      await using opened = await openAndSend()
      const { bench, page, faults } = opened
      // In the middle of an answer, which the page takes up again.
      await page.getByRole('region', { name: 'sql_query' }).waitFor()
      await page.reload()

      const order = page.getByRole('region', { name: 'place_order' })
      await order.getByRole('button', { name: 'Approve' }).waitFor()
      expect(bench.orders()).toEqual([])
      const tools = ['sql_query', 'http_fetch', 'calculator', 'calculator', 'place_order']
      expect(
        await page.getByRole('region').evaluateAll((calls) => calls.map((call) => call.ariaLabel)),
      ).toEqual(tools)
      const { sku, name, quantity } = bench.facts()
      expect(await page.locator('li.assistant').innerText()).toContain(name)
      expect(await order.innerText()).toContain(sku)
      const picture = process.env['SCREENSHOT']
      if (picture !== undefined) await page.screenshot({ path: picture, fullPage: true })

      await page.reload()
      await order.getByRole('button', { name: 'Approve' }).click()
      await page.getByText(`Order 1 is placed: ${quantity} of ${sku}.`).waitFor()
      expect(bench.orders()).toMatchObject([{ sku, quantity }])
      expect(await page.locator('li').count()).toBe(2)

      const shown = await page.locator('ol[aria-busy=false]').innerText()
      await page.reload()
      await page.locator('ol[aria-busy=false]').getByText('Order 1 is placed').waitFor()
      expect(await page.locator('ol').innerText()).toBe(shown)
      expect(faults).toEqual([])
    },
  )

  // Needs Chromium: the head of this file says how to get it.
  it.skipIf(lacksBrowser)('stops the run when its user stops it, and goes on from there', async () => {
    await using opened = await openAndSend(stopAtFirstCall)
    const { bench, page, faults, address } = opened
    await page.getByRole('region', { name: 'sql_query' }).waitFor()
    await page.locator('ol[aria-busy=false]').waitFor()
    const [run] = await runsOf(address)
    const events = `${new URL(address).origin}/runs/${run?.runId}/events`
    const headers = { accept: 'text/event-stream', ...tokenOf(address) }
    expect(await (await fetch(events, { headers })).text()).toContain('"reason":"cancelled"')
    await page.getByRole('textbox').fill('Order what is out of stock.')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    expect(bench.orders()).toEqual([])
    expect(faults).toEqual([])
  })

  // Needs Chromium: the head of this file says how to get it.
  it.skipIf(lacksBrowser)('takes a message while a call waits, and the later decision', async () => {
    await using opened = await openAndSend()
    const { bench, page, faults } = opened
    const approve = page.getByRole('button', { name: 'Approve' })
    await approve.waitFor()
    await page.getByRole('textbox').fill('And thank you.')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('waits for its turn').waitFor()
    await approve.click()
    await page.getByText('Order 1 is placed').waitFor()
    await page.getByText('waits for its turn').waitFor({ state: 'detached' })
    expect(await page.getByRole('alert').count()).toBe(0)
    expect(await page.locator('li').evaluateAll((all) => all.map(({ className }) => className))).toEqual([
      ...['user', 'assistant', 'user', 'assistant'],
    ])
    expect(bench.orders()).toHaveLength(1)
    expect(faults).toEqual([])
  })

  // Needs Chromium: the head of this file says how to get it.
  it.skipIf(lacksBrowser)('answers an edited message as if the first had never been said', async () => {
    await using opened = await openAndSend()
    const { bench, page, faults, address } = opened
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByRole('textbox').fill('Order what runs out first.')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('Order what runs out first.').waitFor()
    await page.getByRole('button', { name: 'Deny' }).click()
    await page.getByText('was denied, so it is not placed').waitFor()
    const said = await page.locator('li.user > p').allInnerTexts()
    expect(said).toEqual(['Order what runs out first.'])
    await page.reload()
    await page.locator('ol[aria-busy=false]').getByText('was denied, so it is not placed').waitFor()
    expect(await page.locator('li.user > p').allInnerTexts()).toEqual(said)
    expect((await runsOf(address)).length).toBe(2)
    expect(bench.orders()).toEqual([])
    expect(faults).toEqual([])
  })

  // Needs Chromium: the head of this file says how to get it.
  it.skipIf(lacksBrowser)('shows the end that its run came to while it was loaded anew', async () => {
    await using opened = await openAndSend()
    const { bench, page, faults, address } = opened
    await page.getByRole('button', { name: 'Approve' }).waitFor()

    const request = await holdChat(page)
    await page.reload()
    await request.asked
    await approveElsewhere(address)
    request.letGo()
    const { sku, quantity } = bench.facts()
    await page.getByText(`Order 1 is placed: ${quantity} of ${sku}.`).waitFor()
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
    expect(await page.locator('li').count()).toBe(2)
    expect(bench.orders()).toHaveLength(1)
    expect(faults).toEqual([])
  })

  // Needs Chromium: the head of this file says how to get it.
  it.skipIf(lacksBrowser)('places no order that is denied', async () => {
    await using opened = await openAndSend()
    const { bench, page, faults } = opened
    await page.getByRole('button', { name: 'Deny' }).click()
    await page.getByText('was denied, so it is not placed').waitFor()
    expect(bench.orders()).toEqual([])
    expect(faults).toEqual([])
  })
})
