import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { defineAgent } from '@tallystick/core'
import { manualClock, scriptedModel } from '@tallystick/testkit'
import { defineTool, waitFor } from '@tallystick/tools'
import { answerOf, openOffice } from './kit/office.ts'

const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`
const clock = manualClock(Date.UTC(2026, 0, 1))

function waitingAgent() {
  const wait = defineTool({
    name: 'wait',
    description: 'Waits for the payment.',
    input: { type: 'object', properties: {} },
    effect: 'read',
    execute: () => waitFor('order/17 paid'),
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'wait', input: {} }] }, { text: 'Paid.' }])
  return defineAgent({ name: 'cashier', instructions: 'Wait.', model, tools: [wait] })
}

function sign(id: string, body: string, { time = clock.now() / 1_000, key = secret, text = '' } = {}) {
  const bytes = Buffer.from(key.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', bytes)
    .update(text || `${id}.${time}.${body}`)
    .digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(time),
    'webhook-signature': `v1a,none v1,${signature}`,
  }
}

async function openWaiting() {
  const office = await openOffice({ agents: [waitingAgent()], signals: { secret }, clock })
  const runId = await office.start('boss', { subject: 'ada' })
  const read = async () => await answerOf(await office.send(`/runs/${runId}/result?waitMs=20000`))
  expect(await read()).toMatchObject({ status: 200 })
  const post = (
    headers: Readonly<Record<string, string>>,
    body = '{"usd":5}',
    path = '/signals/order%2F17%20paid',
  ) =>
    fetch(`${office.listening.url}${path}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
  return { office, runId, read, post }
}

describe('an event over HTTP', () => {
  it('that a webhook has signed wakes all runs that wait for it, once', async () => {
    const { office, read, post, runId } = await openWaiting()
    const answer = await post(sign('msg_1', '{"usd":5}'))
    expect(await answerOf(answer)).toEqual({ status: 202, woken: 1 })
    expect(await answerOf(await post(sign('msg_1', '{"usd":5}')))).toEqual({ status: 202, woken: 0 })
    const run = office.runtime.resume(runId)
    expect(await run.result).toMatchObject({ text: 'Paid.' })
    expect(JSON.stringify((await read())['messages'] ?? (await run.result).messages)).toContain(
      '{\\"usd\\":5}',
    )
    expect(office.reported).toEqual([])
  })

  it.each([
    ['another body', () => sign('msg_1', '{"usd":6}')],
    [
      'another secret',
      () => sign('msg_1', '{"usd":5}', { key: `whsec_${Buffer.alloc(32).toString('base64')}` }),
    ],
    ['an old time', () => sign('msg_1', '{"usd":5}', { time: clock.now() / 1_000 - 301 })],
    ['a time to come', () => sign('msg_1', '{"usd":5}', { time: clock.now() / 1_000 + 301 })],
    ['another id', () => ({ ...sign('msg_1', '{"usd":5}'), 'webhook-id': 'msg_2' })],
    ['no signature of its kind', () => ({ ...sign('msg_1', '{"usd":5}'), 'webhook-signature': 'v2,AAAA' })],
    [
      'a signature that is no base64',
      () => ({ ...sign('msg_1', '{"usd":5}'), 'webhook-signature': 'v1,%%%' }),
    ],
    [
      'parts that move between id and body',
      () => sign('msg_1', '', { text: `msg_1.${clock.now() / 1_000}{"usd":5}` }),
    ],
  ])('is refused with %s, and wakes nothing', async (_name, headers) => {
    const { office, runId, post } = await openWaiting()
    const before = await office.ledger.head(runId as never)
    expect((await post(headers())).status).toBe(401)
    expect(await office.ledger.head(runId as never)).toEqual(before)
    expect(await office.ledger.inbox(runId as never)).toEqual([])
  })

  it('opens no other route by its signature, nor any without the secret', async () => {
    const { post } = await openWaiting()
    for (const path of ['/runs', '/signals', '/signals/a/b', '/schedules'])
      expect((await post(sign('msg_1', '{}'), '{}', path)).status).toBe(401)
    const office = await openOffice({ agents: [waitingAgent()] })
    const headers = { 'content-type': 'application/json', ...sign('msg_1', '{}') }
    const unsigned = await fetch(`${office.listening.url}/signals/paid`, {
      method: 'POST',
      body: '{}',
      headers,
    })
    expect(unsigned.status).toBe(401)
  })

  it('of a caller wakes only runs that it sees', async () => {
    const { office, runId } = await openWaiting()
    const path = '/signals/order%2F17%20paid'
    expect(await answerOf(await office.send(path, 'bob', { usd: 5 }))).toEqual({ status: 202, woken: 0 })
    expect((await office.send(path, 'viewer', { usd: 5 })).status).toBe(403)
    const key = { 'idempotency-key': 'k1' }
    expect(await answerOf(await office.send(path, 'ada', { usd: 5 }, key))).toEqual({ status: 202, woken: 1 })
    expect(await office.runtime.resume(runId).result).toMatchObject({ text: 'Paid.' })
  })
})
