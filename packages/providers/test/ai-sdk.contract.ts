import { describe, expect, it } from 'vitest'
import { httpHarness, type HttpWire, modelContract } from '../src/contract.ts'
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
  for (const { promise, needs, run } of modelContract) {
    const lacking = needs && harness.lacks?.includes(needs) ? ` (this wire has no ${needs})` : ''
    // The title says what the wire lacks.
    it.skipIf(lacking)(`${promise}${lacking}`, async () => {
      await run(harness)
      expect(promise).not.toBe('')
    })
  }
})
