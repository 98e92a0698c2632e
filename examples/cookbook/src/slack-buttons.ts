// A message in Slack asks with two buttons. Slack signs what it sends when somebody clicks one.
import assert from 'node:assert/strict'
import { createHmac, timingSafeEqual } from 'node:crypto'
import { approvalTokens, createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'

const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }), run: () => 'paid' })
// A script plays the model.
const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: { usd: 5 } }] }, { text: 'It is paid.' }])
const agent = defineAgent({ name: 'books', instructions: 'Keep the books.', model, tools: [pay] })
const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent] })
const tokens = approvalTokens({ secret: crypto.randomUUID(), audience: 'slack' })
const signingSecret = 'the signing secret, from the settings of the app in Slack'
const approvers = new Map([['U017', 'maria@example.com']]) // by ids in Slack: a channel has more readers

/** Slack's scheme: HMAC-SHA256 of version, timestamp and the body as it came; after five minutes it is a replay. */
function isFromSlack({ headers }: Request, body: string): boolean {
  const at = headers.get('x-slack-request-timestamp') ?? 'none'
  const given = Buffer.from(headers.get('x-slack-signature') ?? '')
  const expected = Buffer.from(sign(at, body))
  const isNew = Math.abs(Date.now() / 1_000 - Number(at)) < 300
  return isNew && given.length === expected.length && timingSafeEqual(given, expected)
}
const sign = (at: string, body: string, secret = signingSecret): string =>
  `v0=${createHmac('sha256', secret).update(`v0:${at}:${body}`).digest('hex')}`

/** The app's request URL for interactivity. Slack shows no body of its answer: a message goes to the `response_url`. */
async function answerSlack(request: Request): Promise<Response> {
  const body = await request.text()
  if (!isFromSlack(request, body)) return new Response('not from Slack', { status: 401 })
  const { user, actions, response_url: url } = JSON.parse(new URLSearchParams(body).get('payload') ?? '')
  const by = approvers.get(user.id)
  if (by === undefined) return new Response('not an approver', { status: 403 })
  const [{ action_id: action, value: token }] = actions
  const denial = { approved: false, by, reason: 'denied in Slack' } as const
  const answer = await tokens.decide(runtime, token, action === 'approve' ? { approved: true, by } : denial)
  const text = answer.accepted ? `Decided by ${by}: ${action}.` : answer.message
  await fetch(url, { method: 'POST', body: JSON.stringify({ text, replace_original: answer.accepted }) })
  return new Response()
}

const run = runtime.run(agent, 'Pay the bill.')
// The elements of an `actions` block for chat.postMessage; a value may have 2,000 characters. approval-link.ts adds a `url`.
const value = tokens.issue((await run.result).pendingApprovals[0]!)
const buttons = ['approve', 'deny'].map((action_id) => ({ type: 'button', action_id, value }))
const now = String(Math.floor(Date.now() / 1_000))
async function click(id: string, at = now, secret = signingSecret): Promise<number> {
  const payload = JSON.stringify({ user: { id }, actions: [buttons[0]], response_url: 'data:,Slack' })
  const body = `payload=${encodeURIComponent(payload)}`
  const headers = { 'x-slack-request-timestamp': at, 'x-slack-signature': sign(at, body, secret) }
  const request = new Request('https://office.example.com/slack', { method: 'POST', body, headers })
  return (await answerSlack(request)).status
}
assert.equal(await click('U017', now, 'a guess'), 401)
assert.equal(await click('U017', String(Number(now) - 301)), 401)
assert.equal(await click('U666'), 403)
assert.equal((await run.result).pendingApprovals.length, 1)
assert.equal(await click('U017'), 200)
console.log((await run.result).text)
