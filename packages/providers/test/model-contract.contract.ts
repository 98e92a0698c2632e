import { describe, expect, it } from 'vitest'
import { httpHarness, type HttpWire, modelContract } from '../src/contract.ts'
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
