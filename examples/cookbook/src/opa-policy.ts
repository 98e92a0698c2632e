// Open Policy Agent decides about calls, over HTTP. Its decision and the revision of its policy are on record.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type ApprovalPolicy, createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { replayRun } from '@tallystick/replay'
import { nodeHandler } from '@tallystick/server/node'
import { scriptedModel, testTool } from '@tallystick/testkit'

/** OPA's data API: the rule `tallystick/call` answers { decision, why, approvers? }. What throws denies the call. */
const opa: ApprovalPolicy<{ opa: string }> = async ({ context, agent, name, input, effect }) => {
  const response = await fetch(`${context.opa}/v1/data/tallystick/call?provenance=true`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ input: { agent, tool: name, effect, input } }),
    signal: AbortSignal.timeout(5_000),
  })
  if (!response.ok) throw new Error(`OPA answered ${response.status}`)
  const { result, provenance } = JSON.parse(await response.text())
  const why = `${result.why} (OPA, policy ${provenance.bundles.shop.revision})`
  if (result.decision === 'allow') return { run: why }
  return result.decision === 'ask' ? { ask: why, approvers: result.approvers } : { deny: why }
}

// This stands for `opa run --server`: it speaks the same API, with rules in JavaScript.
let revision = 'r41'
const decide = async (request: Request): Promise<Response> => {
  const { input } = JSON.parse(await request.text())
  const approvers = { count: 2, roles: ['finance'] }
  const result = [
    { above: 1_000, decision: 'deny', why: 'above 1,000 USD' },
    { above: 100, decision: 'ask', why: 'above 100 USD', approvers },
  ].find(({ above }) => input.input.usd > above) ?? { decision: 'allow', why: 'small' }
  return Response.json({ result, provenance: { bundles: { shop: { revision } } } })
}
const engine = createServer(nodeHandler({ fetch: decide })).listen(0, '127.0.0.1')
await once(engine, 'listening')

const pay = testTool({ name: 'pay', effect: 'write', run: () => 'paid' })
// A script plays the model.
const toolCalls = [5, 500, 5_000].map((usd) => ({ name: 'pay', input: { usd } }))
const model = scriptedModel([{ toolCalls }, { text: 'Paid.' }])
const agent = defineAgent({ name: 'shop', instructions: 'Pay bills.', model, tools: [pay], approval: opa })
const ledger = memoryLedger()
const context = { opa: `http://127.0.0.1:${(engine.address() as AddressInfo).port}` }
const run = createRuntime({ ledger }).run(agent, 'Pay the bills.', { context })
const [asked] = (await run.result).pendingApprovals
for (const by of ['ann', 'ben']) await run.approve(asked!, { by, roles: ['finance'] })
await run.result
assert.equal(JSON.stringify(pay.runs.map(({ input }) => input['usd'])), '[5,500]')

for await (const event of ledger.read(run.id))
  if (event.type === 'tool_requests_collected')
    for (const { plan, reason, refusal } of event.calls) console.log(`${plan} ${reason ?? refusal?.text}`)
// A replay without the context asks no engine: it has the recorded decisions, whatever the policy says today.
revision = 'r42'
assert.equal((await replayRun(ledger, run.id, () => agent)).divergence, undefined)
engine.close()
