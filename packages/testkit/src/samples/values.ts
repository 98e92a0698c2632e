import type { Limits, RunId, RuntimeEvent, Usage } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/internal'
import { requireTextId } from '@tallystick/core/store-kit'
import {
  type AgentDefinition,
  eventTraits,
  type Fact,
  type ModelRef,
  type Price,
  type ToolCallId,
  deriveToolCallId,
  type UserMessage,
} from '@tallystick/core/vocabulary'

const { fields, listOf, maybe, numberFrom, valueThat } = option

const ordinalNumber = numberFrom(0, { whole: true })
const factList = listOf(
  valueThat('a fact, such as sampleFacts(runId).run_started', (value) =>
    Object.hasOwn(eventTraits, (Object(value) as { readonly type?: PropertyKey }).type ?? ''),
  ),
)
const stampPlace = fields<{ readonly afterSeq?: number | undefined; readonly epoch?: number | undefined }>({
  afterSeq: maybe(ordinalNumber),
  epoch: maybe(ordinalNumber),
})

/** The `ordinal`-th run id of a test: shaped as a UUIDv7, the same at every call, and rising with `ordinal`. */
export function sampleRunId(ordinal: number): RunId {
  requireOptions('sampleRunId', ordinalNumber, ordinal, 'the number')
  return `01932f00-0000-7000-8000-${ordinal.toString(16).padStart(12, '0')}` as RunId
}

/** The `ordinal`-th call, from 1, of the first attempt of a run's first turn. */
export function sampleCallId(runId: RunId, ordinal = 1): ToolCallId {
  requireTextId('sampleCallId', runId)
  return deriveToolCallId(runId, 1, 1, ordinal)
}

/** A user's message of one text. */
export function sampleMessage(text: string): UserMessage {
  return { role: 'user', parts: [{ type: 'text', text }] }
}

/** Facts as events: numbered after `afterSeq`, signed with `epoch`, one millisecond apart. */
export function stampFacts(
  runId: RunId,
  facts: readonly Fact[],
  where: { readonly afterSeq?: number | undefined; readonly epoch?: number | undefined } = {},
): readonly RuntimeEvent[] {
  requireTextId('stampFacts', runId)
  requireOptions('stampFacts', factList, facts, 'the list of facts')
  requireOptions('stampFacts', stampPlace, where)
  const { afterSeq = 0, epoch = 1 } = where
  return facts.map((fact, index) => {
    const seq = afterSeq + index + 1
    return { runId, seq, epoch, at: 1_760_000_000_000 + seq, v: eventTraits[fact.type].v, ...fact }
  })
}

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
