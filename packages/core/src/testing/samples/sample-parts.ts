import type { AgentDefinition } from '../../events/agent-definition.ts'
import type { ModelRef } from '../../events/content.ts'
import type { Limits } from '../../events/limits.ts'
import type { Price, Usage } from '../../events/usage.ts'

/** What samples hold. */
export const model: ModelRef = { provider: 'scripted', api: 'script', modelId: 'sample-1' }
export const limits: Limits = {
  maxTurns: 8,
  maxCostUsd: 0.25,
  maxCallsByTool: { get_weather: 3 },
  onLimit: 'finalize',
}
export const usage: Usage = { inputTokens: 120, outputTokens: 17, cacheReadTokens: 64 }
export const price: Price = {
  inputUsd: 3,
  outputUsd: 15,
  cacheReadUsd: 0.3,
  cacheWriteUsd: 3.75,
  source: 'sample 1',
}
export const definition: AgentDefinition = {
  model,
  instructions: 'Answer briefly.',
  tools: [
    {
      name: 'get_weather',
      description: 'Tells the weather of a city.',
      inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  ],
  parallelToolCalls: true,
  maxOutputTokens: 1024,
  price,
  digest: 'd1'.repeat(32),
}
/** A definition with every field that it may have. */
export const wholeDefinition: AgentDefinition = {
  ...definition,
  maxWebSearches: 3,
  fallbacks: [{ model, price, maxWebSearches: 2 }],
  guardrails: [{ name: 'secrets', on: 'input', beside: true }],
  output: { schema: { type: 'object' }, maxRepairs: 2 },
  handoffs: [{ tool: 'transfer_to_booking', to: 'booking', back: true }],
  summarizer: { model, price, instructions: 'Sum up.' },
  policy: {
    limits: { maxTurns: 4, maxCallsByTool: { get_weather: 2 }, onLimit: 'ask' },
    retry: { maxAttempts: 2 },
    timeouts: { idleMs: 1_000, totalMs: 60_000 },
    compaction: { maxContextTokens: 9_000, keepMessages: 4 },
    tools: [{ name: 'get_weather', effect: 'read', recovery: 'rerun', timeoutMs: 500, approval: 'never' }],
    approval: true,
    models: [{ model, options: { conversation: 'conv_1' } }],
    recording: { toolInputDeltas: false, toolProgress: true, reasoning: false, rawUsage: false },
  },
}
