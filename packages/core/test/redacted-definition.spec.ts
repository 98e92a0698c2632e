import { removedText } from '@tallystick/core/internal'
import type { AgentDefinition } from '@tallystick/core/vocabulary'
import { expect, it } from 'vitest'
import { redactDefinition } from '../src/ledger/redacted-event.ts'

const facts = {
  model: { provider: 'p', api: 'a', modelId: 'm' },
  parallelToolCalls: true,
  digest: 'd',
}
const kept = {
  maxOutputTokens: 0,
  onRefusal: 'fallback',
  price: { input: 1 },
  fallbacks: [{ model: facts.model }],
  guardrails: [{ name: 'guard' }],
  handoffs: ['clerk'],
}
const bare = { ...facts, instructions: 'said', tools: [] } as unknown as AgentDefinition
const whole = {
  ...bare,
  ...kept,
  tools: [{ name: 'look', description: 'said', inputSchema: { type: 'object', title: 'said' } }],
  modelSettings: { temperature: 0.5, stopSequences: ['said'] },
  output: { maxRetries: 2, schema: { title: 'said' } },
  summarizer: { model: facts.model, instructions: 'said', maxOutputTokens: 9 },
} as unknown as AgentDefinition

it('a redacted definition keeps its facts, and no field that it did not have', () => {
  const left = redactDefinition(whole)
  expect(left).toMatchObject({ ...facts, ...kept, modelSettings: { temperature: 0.5 } })
  expect(Object.keys(left).toSorted()).toEqual(Object.keys(whole).toSorted())
  expect(left).toMatchObject({
    // Vendors take no other schema than that of an object for the input of a tool.
    tools: [{ name: 'look', description: removedText, inputSchema: { type: 'object' } }],
    output: { maxRetries: 2, schema: {} },
    summarizer: { model: facts.model, maxOutputTokens: 9 },
  })
  expect(JSON.stringify(left)).not.toContain('said')
  expect(Object.keys(redactDefinition(bare)).toSorted()).toEqual(Object.keys(bare).toSorted())
})
