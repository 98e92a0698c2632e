// The page of `demo --serve`. In a browser where this machine has one: `apt-get install chromium`, or CHROMIUM=/path/to/it.
// SCREENSHOT=docs/chat-page.png writes the picture of the README.
import { describe, expect, it } from 'vitest'
import { openBench } from './bench.ts'
import { chromiumPath, openBrowser } from './browser.ts'
import { startDemo } from './program.ts'

describe('the page of the demo', () => {
  it('is there for everyone on this machine, and the agent for those with the token', async () => {
    await using bench = await openBench()
    await using demo = await startDemo(['--serve', '--ledger', bench.ledgerPath])
    const { origin, hash } = new URL(await demo.firstLine)
    const page = await fetch(origin)
    expect(page.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'/)
    expect(await page.text()).toContain('<script type="module" src="/chat.js">')
    expect((await fetch(`${origin}/chat.css`)).headers.get('content-type')).toBe('text/css; charset=utf-8')
    expect((await fetch(`${origin}/agents`)).status).toBe(401)
    expect((await fetch(origin, { method: 'POST' })).status).toBe(401)
    const headers = { authorization: `Bearer ${new URLSearchParams(hash.slice(1)).get('token')}` }
    expect((await fetch(`${origin}/agents`, { headers })).status).toBe(200)
    expect(await demo.stop()).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Stopping') as string,
    })
  })

  // Needs Chromium. Where this machine has none, the head of this file says how to get it.
  it.skipIf(chromiumPath === undefined)(
    'answers live, asks before the order, and shows the same after it is loaded anew',
    async () => {
      await using bench = await openBench()
      await using demo = await startDemo(['--serve', '--ledger', bench.ledgerPath])
      await using browser = await openBrowser()
      const { page, faults } = browser
      await page.goto(await demo.firstLine)
      expect(page.url()).not.toContain('token')
      await page.getByRole('button', { name: 'Send' }).click()
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

      const shown = await page.locator('ol').innerText()
      await page.reload()
      await page.getByText('Order 1 is placed').waitFor()
      expect(await page.locator('ol').innerText()).toBe(shown)
      expect(faults).toEqual([])
    },
  )

  // Needs Chromium, as above.
  it.skipIf(chromiumPath === undefined)('places no order that is denied', async () => {
    await using bench = await openBench()
    await using demo = await startDemo(['--serve', '--ledger', bench.ledgerPath])
    await using browser = await openBrowser()
    const { page, faults } = browser
    await page.goto(await demo.firstLine)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('button', { name: 'Deny' }).click()
    await page.getByText('was denied, so it is not placed').waitFor()
    expect(bench.orders()).toEqual([])
    expect(faults).toEqual([])
  })
})
