import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createRuntime, memoryLedger } from '@tallystick/core'
import { createServer } from '@tallystick/server'
import { answerOf, openOffice, tellingAgent } from './kit/office.ts'

describe('the page of the inspector', () => {
  it('is served under the path of the server to a caller that it knows, and to nobody else', async () => {
    const office = await openOffice({ inspector: { title: 'runs.db' }, basePath: '/api' })
    const page = await office.send('/api/inspector', 'viewer')
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(await page.text()).toMatch(/^<!doctype html>/i)
    expect((await office.send('/api/inspector', 'stranger')).status).toBe(401)
    expect((await office.send('/inspector', 'viewer')).status).toBe(404)
    expect(office.reported).toEqual([])
  })

  it('may run what is in it, ask its own server, and nothing else; no page frames it', async () => {
    const office = await openOffice({ inspector: true })
    const page = await office.send('/inspector')
    const html = await page.text()
    const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
    const hashesOf = (tag: string): string =>
      [...html.matchAll(new RegExp(`<${tag}[^>]*>(.*?)</${tag}>`, 'gs'))]
        .map(([, text = '']) => hashOf(text))
        .join(' ')
    const policy = page.headers.get('content-security-policy')?.split('; ')
    expect(hashesOf('script')).toMatch(/^'sha256-/)
    expect(policy).toEqual([
      "default-src 'none'",
      `script-src ${hashesOf('script')}`,
      `style-src ${hashesOf('style')}`,
      "connect-src 'self'",
      'img-src data: blob:',
      'worker-src blob:',
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ])
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
    })
  })

  it('is not there unless the server was told to serve it', async () => {
    const office = await openOffice()
    const answer = await answerOf(await office.send('/inspector'))
    expect(answer).toMatchObject({ status: 404, code: 'not_found' })
    expect(answer['detail']).toContain('inspector: true')
  })

  it('learns who reads it, and what they may', async () => {
    const agents = [tellingAgent('teller', 'Hi.'), tellingAgent('cashier', 'Paid.')]
    const office = await openOffice({ agents, inspector: { title: 'runs.db' } })
    const selfOf = async (as: string): Promise<unknown> =>
      await (await office.send('/inspector/self', as)).json()
    expect(await selfOf('boss')).toMatchObject({
      name: 'boss',
      may: 'everything',
      agents: ['teller', 'cashier'],
      title: 'runs.db',
    })
    expect(await selfOf('viewer')).toMatchObject({ name: 'viewer', may: ['inspect'] })
    const web = await openOffice({ drives: false })
    const { may } = (await (await web.send('/inspector/self')).json()) as { readonly may: readonly string[] }
    expect(may).toContain('start')
    expect(may).not.toContain('fork')
    expect(may).not.toContain('drive')
  })

  it('names no agent that its reader does not see', async () => {
    const office = await openOffice({
      agents: [tellingAgent('teller', 'Hi.'), tellingAgent('cashier', 'Paid.')],
      authorize: () => ({ name: 'eve', sees: { agents: ['teller'] } }),
    })
    expect(await answerOf(await office.send('/inspector/self'))).toMatchObject({ agents: ['teller'] })
  })

  it('is served by any host of web requests', async () => {
    const ledger = memoryLedger()
    const { fetch } = createServer({
      runtime: createRuntime({ ledger }),
      agents: [],
      inspector: true,
      authorize: () => ({ name: 'ada', sees: 'everything' }),
    })
    const page = await fetch(new Request('https://app.example/inspector'))
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  })
})

describe('an export of a run', () => {
  it('is a file of events, or a page with the run in it', async () => {
    const office = await openOffice()
    const runId = await office.start('ada', { subject: 'ada' })
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const events = await office.send(`/runs/${runId}/export`, 'viewer')
    expect(events.headers.get('content-type')).toBe('application/jsonl')
    expect((await events.text()).split('\n')[0]).toMatch(`{"runId":"${runId}","seq":1,`)
    const page = await office.send(`/runs/${runId}/export?format=html`, 'viewer')
    expect(page.headers.get('content-disposition')).toBe(`attachment; filename="${runId}.html"`)
    expect(await page.text()).toContain(`data-title="${runId}">{"runId":"${runId}","seq":1,`)
    expect((await office.send(`/runs/${runId}/export?format=html`, 'bob')).status).toBe(403)
    expect((await office.send(`/runs/${runId}/export?format=pdf`, 'viewer')).status).toBe(400)
    expect(office.reported).toEqual([])
  })
})
