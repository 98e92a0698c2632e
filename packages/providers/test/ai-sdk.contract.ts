import { describe, expect, it } from 'vitest'
import { contractOf, httpHarness, type HttpWire } from '@tallystick/testkit/contract'
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
  // What a wire does not show is not asked of it: `lacks` says so beside the wire.
  it.each([...contractOf.model(httpHarness(wire))])('$promise', async ({ run }) => {
    await expect(run()).resolves.toBeUndefined()
  })
})
