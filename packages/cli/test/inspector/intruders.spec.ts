// What pages of others can do to the inspector of this user, in a real browser.
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { lacksBrowser, useBrowsers } from '../../../../scripts/testing/browser.ts'
import { startInspector } from '../kit/inspector.ts'
import { openShop, shopConfig } from '../kit/shop.ts'

const openBrowser = useBrowsers(afterAll)

/** A name that leads to this machine, as a site can let its own do. */
const site = 'evil.example'

/** A server of somebody else on another port of this machine, which answers every path with the same page. */
async function startStranger(
  page: string,
): Promise<{ readonly port: number; readonly requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    response.setHeader('content-type', 'text/html').end(page)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, requests }
}

// Needs Chromium: scripts/testing/install-chromium.sh installs it.
describe.skipIf(lacksBrowser)('a page of somebody else', () => {
  it.each(['127.0.0.1', site])('at %s reads nothing, sends nothing and frames nothing', async (host) => {
    await using shop = await openShop()
    const { runId } = await shop.start()
    const words = ['--allow', 'decisions', '--config', shopConfig]
    const { url, base } = await startInspector('inspect', shop.ledgerPath, ...words)
    await using browser = await openBrowser({ ownNames: [site] })
    const { page } = browser
    await page.goto(url)
    await page.waitForURL(`${base}/inspector`)
    // It even knows the path.
    const stranger = await startStranger(`<title>Stranger</title><iframe src="${base}/inspector"></iframe>`)
    const other = await browser.openTab()
    await other.goto(`http://${host}:${stranger.port}/`)
    expect(await other.frames()[1]?.textContent('body')).not.toContain('Choose a run')
    const command = `${base}/runs/${runId}/cancel`
    const read = async (): Promise<unknown> => {
      const response = await page.request.get(`${base}/runs/${runId}`)
      return ((await response.json()) as { readonly seq: number }).seq
    }
    const before = await read()
    const tries = await other.evaluate(
      async ({ command, runs }) => {
        const outcome = async (work: Promise<Response>): Promise<string> =>
          await work.then(
            async (response) => `${response.type} ${response.status} ${await response.text()}`,
            (error: unknown) => String(error),
          )
        const include = { credentials: 'include' } as const
        const body = '{}'
        return [
          await outcome(fetch(runs, include)),
          await outcome(fetch(runs, { ...include, mode: 'no-cors' })),
          await outcome(fetch(command, { ...include, method: 'POST', body, mode: 'no-cors' })),
          await outcome(
            fetch(command, {
              ...{ ...include, method: 'POST', body },
              headers: { 'content-type': 'application/json' },
            }),
          ),
        ]
      },
      { command, runs: `${base}/runs` },
    )
    expect(tries).toEqual([
      'TypeError: Failed to fetch',
      expect.stringMatching(/^(opaque 0 $|TypeError)/),
      expect.stringMatching(/^(opaque 0 $|TypeError)/),
      'TypeError: Failed to fetch',
    ])
    await other.setContent(`<form method="post" action="${command}"><button>Win a prize</button></form>`)
    await other.getByRole('button').click()
    await other.waitForURL(command)
    expect(await other.content()).toMatch(/Another page sent this/)
    expect(await read()).toBe(before)
  })

  it('gets no cookie of the inspector, whatever its path', async () => {
    await using shop = await openShop()
    await shop.start()
    const { url, base } = await startInspector('inspect', shop.ledgerPath)
    await using browser = await openBrowser({ ownNames: [site] })
    await browser.page.goto(url)
    await browser.page.waitForURL(`${base}/inspector`)
    const stranger = await startStranger('<title>Stranger</title>')
    for (const path of ['/', '/inspector', '/runs'])
      await browser.page.goto(`http://127.0.0.1:${stranger.port}${path}`)
    expect(stranger.requests.length).toBeGreaterThanOrEqual(3)
    expect(stranger.requests.flatMap(({ headers }) => headers.cookie ?? [])).toEqual([])
  })

  it('cannot take its own name for that of this machine', async () => {
    await using shop = await openShop()
    await shop.start()
    const { url, base } = await startInspector('inspect', shop.ledgerPath)
    await using browser = await openBrowser({ ownNames: [site] })
    await browser.page.goto(url.replace('127.0.0.1', site))
    expect(await browser.page.textContent('h1')).toBe('This is another host')
    // The ticket was not spent.
    await browser.page.goto(url)
    await browser.page.waitForURL(`${base}/inspector`)
  })
})

describe.skipIf(lacksBrowser)('the link', () => {
  it('lets one browser in, also from a page of another site, and no second one', async () => {
    await using shop = await openShop()
    await shop.start()
    const { url, base } = await startInspector('inspect', shop.ledgerPath)
    const stranger = await startStranger(`<a href="${url}">A terminal in a browser</a>`)
    await using browser = await openBrowser({ ownNames: [site] })
    await browser.page.goto(`http://${site}:${stranger.port}/`)
    await browser.page.getByRole('link').click()
    await browser.page.waitForURL(`${base}/inspector`)
    await browser.page.getByRole('heading', { name: 'runs.db' }).waitFor()
    await using another = await openBrowser()
    await another.page.goto(url)
    expect(await another.page.textContent('body')).toContain('used already')
    expect(await another.page.textContent('body')).toContain('tallystick inspect')
    // In the first browser it leads to the page once more.
    const tab = await browser.openTab()
    await tab.goto(url)
    await tab.waitForURL(`${base}/inspector`)
  })
})
