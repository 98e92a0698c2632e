// A person gets a link, and decides about one call on a page of the server: signed, with an expiry, good for one decision.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { createServer } from '@tallystick/server'
import { serve } from '@tallystick/server/node'
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

const url = 'https://office.example.com'
const approvalPage = { secret: crypto.randomUUID(), url }
const server = createServer({ runtime, agents: [agent], approvalPage })
const listening = await serve(server)

const run = runtime.run(agent, 'Pay invoice A-17.')
const [asked] = (await run.result).pendingApprovals
const link = server
  .approvalLink(asked!, { to: 'maria@example.com', expiresInMs: 3_600_000 })
  .replace(url, listening.url)

// Scanners open links in mails, too: the page only shows, and its form decides. It needs no JavaScript.
assert.match(await (await fetch(link)).text(), /May books run pay\?[^]*A-17/)
assert.deepEqual(paid, [])
const decide = (approval: string) =>
  fetch(link.split('?')[0]!, { method: 'POST', body: new URLSearchParams({ approval, decision: 'approve' }) })
const token = new URL(link).searchParams.get('approval')!
assert.equal((await decide(token.replace('maria', 'mallory'))).status, 400)
assert.match(await (await decide(token)).text(), /Approved[^]*By maria@example.com/)
assert.equal((await decide(token)).status, 409)

const { text } = await run.result
assert.deepEqual([text, paid], ['The invoice is paid.', ['A-17']])
console.log(text)
await listening.close()
