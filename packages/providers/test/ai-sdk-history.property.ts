import { createAnthropic } from '@ai-sdk/anthropic'
import type { ModelRequest } from '@tallystick/core'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { withBlocks } from './kit/ai-sdk-wires.ts'
import { collect } from './kit/collect.ts'
import { brokenRules } from './kit/history-rules.ts'
import { own, requests as transcripts } from './kit/transcripts.ts'
import type { Loose } from './kit/loose.ts'

const here = { provider: 'anthropic', api: 'ai-sdk', modelId: 'claude-test-1' }

/** Replies of Anthropic become such of its provider; what they carry for our own adapter says nothing to it. */
const requests: fc.Arbitrary<ModelRequest> = transcripts.map((request) => ({
  ...request,
  messages: request.messages.map((message) =>
    message.role === 'assistant' && message.model.provider === own.provider
      ? { ...message, model: { ...here, modelId: message.model.modelId } }
      : message,
  ),
}))

it('any history goes through the AI SDK’s provider for Anthropic to a request that the vendor takes', async () => {
  let body: Loose
  const fetch = (_: unknown, init?: RequestInit) => {
    body = JSON.parse(init?.body as string)
    return Promise.resolve(
      Response.json({ type: 'error', error: { type: 'x', message: 'x' } }, { status: 500 }),
    )
  }
  const model = fromAiSdk(createAnthropic({ apiKey: 'k', fetch })('claude-test-1'))
  await fc.assert(
    fc.asyncProperty(requests, async (request) => {
      body = undefined
      const { failure } = await collect(model, request)
      expect(failure?.message).toContain('500')
      expect(brokenRules(withBlocks(body))).toEqual([])
    }),
    { numRuns: tries(300) },
  )
})
