import { test } from 'node:test'
import { given, propertyTest, sampleFacts, sampleRunId } from '@tallystick/testkit'
import { contractOf } from '@tallystick/testkit/contract'
import { effects, inputs, refund, support } from './support.ts'

for (const { promise, run } of contractOf.tool(refund, { inputs, effects })) test(promise, run)

test('the agent keeps the laws', async () => {
  await propertyTest(support, { tools: { refund: { effects } }, runs: 20 })
})

test('a cancel is on record', () => {
  const { run_started } = sampleFacts(sampleRunId(1))
  given([run_started])
    .when({ type: 'cancel' })
    .then([{ type: 'cancel_requested', turn: 0 }])
})
