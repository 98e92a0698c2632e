import { describe, expect, it } from 'vitest'
import { httpHarness, type HttpWire, modelContract } from '@tallystick/testkit/contract'
import {
  aiSdkAnthropicWire,
  aiSdkCompatibleWire,
  aiSdkOpenAiChatWire,
  aiSdkResponsesWire,
} from './kit/ai-sdk-wires.ts'

const wires: Readonly<Record<string, HttpWire>> = {
  '@ai-sdk/anthropic': aiSdkAnthropicWire,
  '@ai-sdk/openai-compatible': aiSdkCompatibleWire,
  '@ai-sdk/openai, chat': aiSdkOpenAiChatWire,
  '@ai-sdk/openai, responses': aiSdkResponsesWire,
}

describe.each(Object.entries(wires))('fromAiSdk() over %s', (_, wire) => {
  const harness = httpHarness(wire)
  // What a wire does not show is not asked of it: `lacks` says so beside the wire.
  const applies = ({ needs }: (typeof modelContract)[number]) => !needs || !harness.lacks?.includes(needs)
  it.each(modelContract.filter(applies))('$promise', async ({ promise, run }) => {
    await run(harness)
    expect(promise).not.toBe('')
  })
})
