import type { Message } from '@tallystick/core'
import { removedText } from '@tallystick/core/internal'
import { sampleCallId, sampleMessage, sampleRunId, sampleFacts, stampFacts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { redactMessage, redactReply, redactEvent } from '../src/ledger/redacted-event.ts'

const toolCallId = sampleCallId(sampleRunId(1))
const gone = { type: 'text', text: removedText } as const

describe('what is left of a message', () => {
  it('given what a user said, when its content is removed, then as many texts are left, and an empty one stays empty', () => {
    expect(redactMessage(sampleMessage('secret'))).toEqual({ role: 'user', parts: [gone] })
    const parts = [
      { type: 'text', text: '' },
      { type: 'image', mediaType: 'image/png', data: 'aGVs' },
    ] as const
    expect(redactMessage({ role: 'user', parts })).toEqual({
      role: 'user',
      parts: [{ type: 'text', text: '' }, gone],
    })
  })

  it('given results, when their content is removed, then each still has its call, its tool and its outcome', () => {
    const result = { toolCallId, name: 'pay', outcome: 'failed' as const, durationMs: 5 }
    const message = {
      role: 'tool',
      results: [{ ...result, content: [{ type: 'text', text: 'no money' }] }],
    } as unknown as Message
    expect(redactMessage(message)).toEqual({
      role: 'tool',
      results: [{ toolCallId, name: 'pay', outcome: 'failed', content: [gone] }],
    })
  })

  it('given a reply, when its content is removed, then its calls are left without their input, and its reasoning is not', () => {
    const call = { type: 'tool_call', toolCallId, providerCallId: 'c1', name: 'pay' } as const
    const opaque = { provider: 'scripted', api: 'script', data: { signature: 'x' } }
    const parts = [
      { type: 'reasoning', text: 'why', opaque },
      { type: 'text', text: 'I pay.' },
      { ...call, input: { usd: 5 }, opaque },
    ] as never
    const about = { model: { provider: 'a', api: 'b', modelId: 'c' }, stopReason: 'tool_use', partial: true }
    expect(redactMessage({ role: 'assistant', parts, ...about } as Message)).toEqual({
      ...{ role: 'assistant', ...about, parts: [gone, { ...call, input: {} }] },
    })
    expect(redactReply([{ type: 'reasoning', text: 'why' }])).toEqual([gone])
    expect(redactReply([])).toEqual([])
  })
})

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
