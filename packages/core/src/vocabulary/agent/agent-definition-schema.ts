import {
  amount,
  count,
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
import type {
  AgentDefinition,
  FallbackModel,
  GuardrailDefinition,
  HandoffDefinition,
  OutputDefinition,
  SummarizerDefinition,
} from './agent-definition.ts'
import { price, maxWebSearches } from '../billing/billing-schema.ts'
import { modelRef } from '../model/content-schema.ts'
import { guardedThings } from '../signals/event-parts.ts'
import { agentPolicy, requestAddition } from './agent-policy-schema.ts'
import { modelSettings } from '../model/model-settings-schema.ts'
import { refusalPolicy } from '../model/refusal-schema.ts'
import type { GivenModel } from './run-given.ts'
import type { ToolDefinition } from '../model/tool-definition.ts'

/** Checks what a model is shown of a tool. */
export const toolDefinition: Schema<ToolDefinition> = objectOf<ToolDefinition>({
  name: text,
  description: text,
  inputSchema: jsonObject,
})
const pricedModel = {
  model: modelRef,
  price: optional(price),
  maxWebSearches: optional(maxWebSearches),
}

/** The model of a run, as a ledger records it. */
export const givenModel: Schema<GivenModel> = objectOf<GivenModel>({
  ...pricedModel,
  options: optional(jsonObject),
  additions: optional(listOf(requestAddition)),
})

/** An agent as a ledger records it. */
export const agentDefinition: Schema<AgentDefinition> = objectOf<AgentDefinition>({
  model: modelRef,
  instructions: text,
  tools: listOf(toolDefinition),
  parallelToolCalls: flag,
  digest: text,
  maxOutputTokens: optional(amount),
  price: optional(price),
  maxWebSearches: optional(maxWebSearches),
  modelSettings: optional(modelSettings),
  onRefusal: optional(refusalPolicy),
  fallbacks: optional(listOf(objectOf<FallbackModel>(pricedModel))),
  guardrails: optional(
    listOf(
      objectOf<GuardrailDefinition>({
        name: text,
        on: wordOf(guardedThings),
        beside: optional(exactly(true)),
      }),
    ),
  ),
  output: optional(
    objectOf<OutputDefinition>({ schema: jsonObject, wrapped: optional(exactly(true)), maxRepairs: count }),
  ),
  handoffs: optional(
    listOf(objectOf<HandoffDefinition>({ tool: text, to: text, back: optional(exactly(true)) })),
  ),
  summarizer: optional(objectOf<SummarizerDefinition>({ ...pricedModel, instructions: text })),
  policy: optional(agentPolicy),
})
