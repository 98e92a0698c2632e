// An agent as a tool: the engineer on call has an operator act, in a child run whose approval appears in the parent.
import assert from 'node:assert/strict'
import { agentTool, createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { z } from 'zod'

const restart = defineTool({
  name: 'restart_service',
  description: 'Restarts a service in production.',
  input: z.object({ service: z.string() }),
  effect: 'write',
  approval: 'always',
  execute: ({ service }) => `${service} restarted, healthy after 4 s`,
})
// Scripts play both models, and report what they would have used; use anthropic('…') instead.
const usage = { inputTokens: 500, outputTokens: 40 }
const operator = defineAgent({
  name: 'operator',
  description: 'Acts on production. Tell it what to do and why.',
  instructions: 'Do what you are told, and check it.',
  tools: [restart],
  limits: { maxTurns: 4 },
  model: scriptedModel([
    { toolCalls: [{ name: 'restart_service', input: { service: 'checkout' } }], usage },
    { text: 'The script says: checkout is healthy again.', usage },
  ]),
})
const onCallModel = scriptedModel([
  { toolCalls: [{ name: 'operator', input: { task: 'Restart checkout: its queue is stuck.' } }], usage },
  { text: 'The script says: the incident is over.', usage },
])
const onCall = defineAgent({
  name: 'on call',
  instructions: 'Resolve incidents.',
  model: onCallModel,
  tools: [agentTool(operator)],
  limits: { maxTotalTokens: 10_000 },
})
const ledger = memoryLedger()
const run = createRuntime({ ledger, agents: [onCall] }).run(onCall, 'Checkout answers no more.')

// The operator waits for a person, so the parent waits too, and shows the call with the run to which it belongs.
const [pending] = (await run.result).pendingApprovals
assert.notEqual(pending!.runId, run.id)
await run.approve(pending!, { by: 'maria' })

const result = await run.result
console.log(`${result.text} The operator took ${result.children.turns} turns.`)
assert.equal(result.reason, 'answered')
assert.match(JSON.stringify(onCallModel.requests[1]?.messages), /checkout is healthy again/)
// The operator's usage counts for the parent: two calls of each model.
assert.deepEqual(result.usage, { inputTokens: 2_000, outputTokens: 160 })
const [started] = await Array.fromAsync(ledger.read(pending!.runId))
assert(started?.type === 'run_started')
assert.equal(started.parent?.runId, run.id)
// Its limits lie within what the parent had left, minus what the parent's own answer may need.
assert((started.limits.maxTotalTokens ?? Infinity) < 9_460 - 500)
