// The program sends a link and suspends its run. The click comes back over HTTP and decides one call, once, by the person asked.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { approvalTokens, createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { z } from 'zod'

const paid: string[] = []
const pay = defineTool({
  name: 'pay',
  description: 'Pays an invoice.',
  input: z.object({ invoice: z.string() }),
  effect: 'write',
  approval: 'always',
  execute: ({ invoice }) => `paid ${paid.push(invoice)} invoice`,
})
// A script plays the model: it asks for the tool, then ends.
const calls = [{ name: 'pay', input: { invoice: 'A-17' } }]
const model = scriptedModel([{ toolCalls: calls }, { text: 'The invoice is paid.' }])
const agent = defineAgent({ name: 'books', instructions: 'Keep the books.', model, tools: [pay] })
const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent] })

const tokens = approvalTokens({ secret: crypto.randomUUID(), audience: 'the office' })
// Scanners open links in mails too, so the link only shows the question, and a form posts the decision.
async function answerTo(token: string, isDecision: boolean): Promise<object> {
  return isDecision ? await tokens.decide(runtime, token, { approved: true }) : tokens.read(token)
}
const page = createServer((request, response) => {
  const token = new URLSearchParams(request.url?.split('?')[1]).get('token') ?? ''
  const sent = answerTo(token, request.method === 'POST').then((answer) => {
    const isRefused = 'accepted' in answer && answer.accepted === false
    response.writeHead(isRefused ? 409 : 200).end(JSON.stringify(answer))
  })
  // A request that cannot be answered must not end the process.
  sent.catch(() => response.writeHead(500).end())
}).listen(0, '127.0.0.1')
await once(page, 'listening')

const { runId, pendingApprovals } = await runtime.run(agent, 'Pay invoice A-17.').result
const token = tokens.issue(pendingApprovals[0]!, { to: 'maria@example.com', expiresInMs: 3_600_000 })
const link = `http://127.0.0.1:${(page.address() as AddressInfo).port}/?token=${token}`

assert.match(await (await fetch(link)).text(), /"to":"maria@example.com"/)
assert.equal((await fetch(link.replace('maria', 'mallory'), { method: 'POST' })).status, 409)
assert.deepEqual(await (await fetch(link, { method: 'POST' })).json(), { accepted: true })
assert.equal((await fetch(link, { method: 'POST' })).status, 409)

const { text } = await runtime.resume(runId).result
assert.equal(text, 'The invoice is paid.')
assert.deepEqual(paid, ['A-17'])
console.log(text)
page.close()
