import { expect, it } from 'vitest'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { redactEvent } from '../src/ledger/redacted-event.ts'

it('of what a run was given stay the names and ids, and nothing that says something', () => {
  const runId = sampleRunId(1)
  const model = { provider: 'p', api: 'a', modelId: 'm' }
  const [event] = stampFacts(runId, [
    {
      ...sampleFacts(runId).run_started,
      standing: [],
      givenModel: { model, options: { user: 'ada' } },
      toolChoice: { type: 'any' },
      parallelToolCalls: false,
      labels: { workflowName: 'w', traceId: 't', groupId: 'g', tags: ['secret'], metadata: { a: 'secret' } },
      idempotencyKey: 'order of ada',
    },
  ])
  const kept = redactEvent(event!)
  expect(kept).toMatchObject({
    givenModel: { model },
    toolChoice: { type: 'any' },
    parallelToolCalls: false,
    labels: { workflowName: 'w', traceId: 't', groupId: 'g' },
  })
  expect(JSON.stringify(kept)).not.toMatch(/ada|secret/)
})
