import {
  amount,
  exactly,
  flag,
  jsonObject,
  listOf,
  objectOf,
  optional,
  type Schema,
  text,
  wordOf,
} from '../values/schema.ts'
import type { AgentPolicy, PinnedModel, RequestAddition, ToolOrigin, ToolPolicy } from './agent-policy.ts'
import { modelRef } from '../model/content-schema.ts'
import { nextTurns, type OutputPolicy } from './output-policy.ts'
import type { RecordingPolicy } from './recording-policy.ts'
import { limits, retry as wholeRetry } from '../limits/limits-schema.ts'
import { recoveries, toolEffects } from '../model/tool-definition.ts'

const retry = objectOf<NonNullable<AgentPolicy['retry']>>({
  maxAttempts: optional(amount),
  baseMs: optional(amount),
  capMs: optional(amount),
  maxRetryAfterMs: optional(amount),
  maxTotalMs: optional(amount),
})
const tool = objectOf<ToolPolicy>({
  name: text,
  effect: wordOf(toolEffects),
  recovery: wordOf(recoveries),
  timeoutMs: optional(amount),
  quietMs: optional(amount),
  retry: optional(wholeRetry),
  maxResultChars: optional(amount),
  serial: optional(text),
  maxConcurrency: optional(amount),
  repeats: optional(exactly('allowed')),
  approval: optional(text),
  origin: optional(objectOf<ToolOrigin>({ server: text, name: text })),
})
const timeouts = objectOf<NonNullable<AgentPolicy['timeouts']>>({
  idleMs: optional(amount),
  totalMs: optional(amount),
  prepareMs: optional(amount),
})
const compaction = objectOf<NonNullable<AgentPolicy['compaction']>>({
  maxContextTokens: amount,
  keepMessages: amount,
})

/** Checks which events a run records. */
export const recordingPolicy: Schema<RecordingPolicy> = objectOf<RecordingPolicy>({
  toolInputDeltas: optional(flag),
  toolProgress: optional(flag),
  reasoning: optional(flag),
  rawUsage: optional(flag),
  toolErrors: optional(flag),
  content: optional(wordOf(['full', 'digests'])),
})

const outputPolicy = objectOf<OutputPolicy>({
  transforms: listOf(text),
  nextTurn: optional(wordOf(nextTurns)),
})

/** Checks a field that an adapter's option sets. */
export const requestAddition: Schema<RequestAddition> = objectOf<RequestAddition>({
  option: text,
  field: text,
  replaces: optional(exactly(true)),
  digest: optional(text),
})

/** Checks how an agent's runs are driven. */
export const agentPolicy: Schema<AgentPolicy> = objectOf<AgentPolicy>({
  limits,
  retry: optional(retry),
  timeouts: optional(timeouts),
  compaction: optional(compaction),
  tools: optional(listOf(tool)),
  maxResultChars: optional(amount),
  approval: optional(exactly(true)),
  models: optional(
    listOf(
      objectOf<PinnedModel>({
        model: modelRef,
        options: optional(jsonObject),
        additions: optional(listOf(requestAddition)),
      }),
    ),
  ),
  recording: optional(recordingPolicy),
  outputStream: optional(outputPolicy),
})
