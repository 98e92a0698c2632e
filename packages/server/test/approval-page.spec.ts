import { createRuntime, defineAgent, memoryLedger, type PendingApproval } from '@tallystick/core'
import { createServer, type LinkOptions, type ServerOptions } from '@tallystick/server'
import { serve } from '@tallystick/server/node'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { documentAt, exampleOf } from './kit/described.ts'
import { lacksBrowser, useBrowsers } from '../../../scripts/testing/browser.ts'

const openBrowser = useBrowsers(afterAll)

const secret = 's'.repeat(32)
const input = {
  to: 'ben\u202Etxt.exe',
  memo: '<script>alert(1)</script>',
  amount: 5,
  zero: 'a\u200Bb',
  blank: 'c\u3164d\u00A0e\u2800f\uFE0F',
  heart: '❤\uFE0F',
}

/** A run of an agent that waits for a person, and a server with the page. */
async function openDesk({ approvers, ...more }: { approvers?: object[] } & Partial<ServerOptions> = {}) {
  const check = () => ({
    kind: 'ask' as const,
    reason: 'it is <b>money</b>',
    ...(approvers && { approvers }),
  })
  const pay = testTool({ name: 'pay', effect: 'write', check, run: () => 'paid' })
  const model = scriptedModel([{ toolCalls: [{ name: 'pay', input }] }, { text: 'Done.' }])
  const agent = defineAgent({ name: 'clerk', instructions: 'Pay.', model, tools: [pay] })
  const ledger = memoryLedger()
  const clock = manualClock()
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock } })
  const run = runtime.run(agent, 'Pay.', { owner: 'olga' })
  const [asked] = (await run.result).pendingApprovals as [PendingApproval]
  const url = 'https://ops.example.com/api'
  const reported: unknown[] = []
  const server = createServer({
    ...{ runtime, agents: [agent], basePath: '/api', clock, authorize: () => undefined },
    ...{ approvalPage: { secret, url }, report: (error: unknown) => reported.push(error), ...more },
  })
  const listening = await serve(server)
  onTestFinished(async () => {
    await listening.close(0)
  })
  const here = (link: string) => link.replace('https://ops.example.com', listening.url)
  const link = (options: LinkOptions = { to: 'ann' }) => here(server.approvalLink(asked, options))
  const open = async (address: string) => {
    const response = await fetch(address)
    return { status: response.status, text: await response.text(), headers: response.headers }
  }
  const post = async (address: string, fields: Record<string, string>) => {
    const { origin, pathname, searchParams } = new URL(address)
    const form = new URLSearchParams({ approval: searchParams.get('approval') ?? '', ...fields })
    const response = await fetch(origin + pathname, { method: 'POST', body: form, redirect: 'manual' })
    const next = response.headers.get('location')
    return {
      status: response.status,
      text: await response.text(),
      ...(next && { next: `${origin}${pathname}${next}` }),
    }
  }
  return { runtime, ledger, run, asked, clock, server, tool: pay, link, open, post, reported }
}

const seqOf = async ({ ledger, run }: Awaited<ReturnType<typeof openDesk>>) =>
  (await ledger.head(run.id))?.seq

describe('the page that decides by a signed link', () => {
  it('shows the whole input with hidden characters made visible, and changes nothing', async () => {
    const desk = await openDesk()
    const before = await seqOf(desk)
    const { status, text, headers } = await desk.open(desk.link())
    expect(status).toBe(200)
    expect(text).toContain('May clerk run pay?')
    expect(text).toContain('ben⟨U+202E⟩txt.exe')
    expect(text).toContain('a⟨U+200B⟩b')
    expect(text).toContain('c⟨U+3164⟩d⟨U+00A0⟩e⟨U+2800⟩f⟨U+FE0F⟩')
    expect(text).toContain('❤\uFE0F')
    expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;')
    expect(text).toContain('it is &lt;b&gt;money&lt;/b&gt;')
    expect(text).not.toContain('<script')
    expect(text.indexOf('amount')).toBeLessThan(text.indexOf('memo'))
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'nonce-[\w-]+'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
    )
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    await fetch(desk.link(), { method: 'HEAD' })
    await desk.open(`${desk.link()}&decision=approve`)
    expect(await seqOf(desk)).toBe(before)
    expect(desk.tool.runs).toHaveLength(0)
  })

  it('records a decision under the name of the link, once, and then shows what is on record', async () => {
    const desk = await openDesk()
    const { status, next } = await desk.post(desk.link(), { decision: 'approve', reason: ' It is due. ' })
    expect(status).toBe(303)
    expect((await desk.open(next!)).text).toMatch(/Approved[^]*By ann at [^]*: It is due\./)
    expect(await desk.run.result).toMatchObject({ status: 'done' })
    expect(desk.tool.runs).toHaveLength(1)
    const again = await desk.post(desk.link({ to: 'ben' }), { decision: 'deny' })
    expect(again.status).toBe(409)
    expect(again.text).toContain('By ann at')
    const decided = await Array.fromAsync(desk.ledger.find({ types: ['approval_decided'] }))
    expect(decided).toMatchObject([{ by: 'ann', via: 'link', reason: 'It is due.', approved: true }])
  })

  it('is described where it is served, as it answers', async () => {
    const desk = await openDesk()
    const path = '/approval'
    const approvalPage = { secret, url: 'https://ops.example.com' }
    const { [path]: page } = (await documentAt('', { approvalPage })).paths
    const shown = await desk.open(desk.link())
    expect(Object.keys(page?.['get']?.responses['200']?.content ?? {})).toEqual([
      shown.headers.get('content-type')?.split(';')[0],
    ])
    const example = exampleOf(page!['post']!)
    expect(Object.keys(example ?? {})).toContain('approval')
    const { approval: _, ...decision } = example as Record<string, string>
    const { status } = await desk.post(desk.link(), decision)
    expect(Object.keys(page?.['post']?.responses ?? {})).toContain(String(status))
    expect((await documentAt('')).paths).not.toHaveProperty([path])
  })

  it('denies, too, and takes two posts at once as one', async () => {
    const desk = await openDesk()
    const both = await Promise.all([1, 2].map(() => desk.post(desk.link(), { decision: 'deny', reason: '' })))
    expect(both.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([303, 409])
    expect(await desk.run.result).toMatchObject({ status: 'done' })
    expect(desk.tool.runs).toHaveLength(0)
  })

  it('refuses a changed, foreign or expired link, and one without a decision', async () => {
    const desk = await openDesk()
    const link = desk.link({ to: 'ann', expiresInMs: 1_000 })
    const other = createServer({
      ...{ runtime: desk.runtime, agents: [], authorize: () => undefined },
      approvalPage: { secret, url: 'https://other.example.com/api' },
    }).approvalLink(desk.asked, { to: 'ann' })
    const bad = [link.replace('.ann.', '.ben.'), `${link.split('?')[0]}?approval=`, `${link.split('?')[0]}`]
    for (const each of [...bad, other.replace(/^.*\?/, `${link.split('?')[0]}?`)]) {
      expect(await desk.open(each)).toMatchObject({ status: 400 })
      expect(await desk.post(each, { decision: 'approve' })).toMatchObject({ status: 400 })
    }
    expect(await desk.post(link, { decision: 'maybe' })).toMatchObject({ status: 400 })
    expect(await desk.post(link, { reason: 'x'.repeat(70_000) })).toMatchObject({ status: 413 })
    desk.clock.advance(1_000)
    expect(await desk.open(link)).toMatchObject({ status: 410 })
    expect(await desk.post(link, { decision: 'approve' })).toMatchObject({ status: 410 })
    expect(desk.tool.runs).toHaveLength(0)
    expect(desk.reported).toEqual([])
  })

  it('holds each person to the roles of the link, and says who is missing', async () => {
    const desk = await openDesk({ approvers: [{ count: 2, roles: ['finance'] }] })
    const finance = { roles: ['finance'] }
    expect((await desk.open(desk.link())).text).toContain('Needs the approval of 2 people of finance')
    expect(await desk.post(desk.link(), { decision: 'approve' })).toMatchObject({ status: 403 })
    expect(await desk.post(desk.link({ to: 'olga', ...finance }), { decision: 'approve' })).toMatchObject({
      status: 403,
      text: expect.stringContaining('olga started this run'),
    })
    const ann = desk.link({ to: 'ann', ...finance })
    expect(await desk.post(ann, { decision: 'approve' })).toMatchObject({ status: 303 })
    expect((await desk.open(ann)).text).toContain('It waits for somebody else.')
    expect(await desk.post(ann, { decision: 'approve' })).toMatchObject({ status: 409 })
    const ben = desk.link({ to: 'ben', ...finance })
    expect(await desk.post(ben, { decision: 'approve' })).toMatchObject({ status: 303 })
    expect(await desk.run.result).toMatchObject({ status: 'done' })
  })

  it.skipIf(lacksBrowser)('works in a browser whose pages may run no script', async () => {
    const desk = await openDesk()
    await using browser = await openBrowser()
    const { page, faults } = browser
    await page.goto(desk.link())
    expect(await page.locator('pre').innerText()).toContain('ben⟨U+202E⟩txt.exe')
    await page.locator('[name=reason]').fill('It is due.')
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('heading', { name: 'Approved' }).waitFor()
    expect(await page.locator('body').innerText()).toContain(': It is due.')
    expect(faults.filter((fault) => !fault.includes('favicon') && !fault.includes('404'))).toEqual([])
    expect(desk.tool.runs).toHaveLength(1)
  })

  it('wakes the workers of a server that drives nothing', async () => {
    const woken: string[] = []
    const engine = { wake: async ({ runId }: { runId: string }) => void woken.push(runId) }
    const desk = await openDesk({ drives: false, engine })
    expect(await desk.post(desk.link(), { decision: 'approve' })).toMatchObject({ status: 303 })
    expect(woken).toEqual([desk.run.id])
  })

  it('is there only if it was asked for', async () => {
    const desk = await openDesk({ approvalPage: undefined })
    expect(() => desk.server.approvalLink(desk.asked, { to: 'ann' })).toThrow(
      'Give createServer the option approvalPage',
    )
    expect(() =>
      createServer({ runtime: desk.runtime, agents: [], approvalPage: { secret: 'short', url: 'x' } }),
    ).toThrow('approvalPage.secret')
  })
})
