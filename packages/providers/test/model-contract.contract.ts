import { describe, expect, it } from 'vitest'
import { contractOf, httpHarness, type HttpWire } from '@tallystick/testkit/contract'
import { anthropicWire, ollamaWire } from './kit/contract-wires.ts'
import { chatWire, responsesWire } from './kit/openai-contract-wires.ts'

/** Every adapter of ours. Another one is another line here, and a wire in the kit. */
const wires: Readonly<Record<string, HttpWire>> = {
  'anthropic()': anthropicWire,
  'ollama()': ollamaWire,
  'openai()': responsesWire,
  'openaiChat()': chatWire,
}

describe.each(Object.entries(wires))('%s', (_, wire) => {
  it.each([...contractOf.model(httpHarness(wire))])('$promise', async ({ run }) => {
    await expect(run()).resolves.toBeUndefined()
  })
})
