import * as z from 'zod'
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
import { amount, count, flag, jsonObject, objectOf, optional, text } from '../values/schema.ts'
import { agentPolicy } from './agent-policy-schema.ts'
import { modelSettings } from '../model/model-settings-schema.ts'
import { refusalPolicy } from '../model/refusal-schema.ts'
import type { GivenModel } from './run-given.ts'
import type { ToolDefinition } from '../model/tool-definition.ts'

/** Checks what a model is shown of a tool. */
export const toolDefinition: z.ZodType<ToolDefinition> = objectOf<ToolDefinition>({
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
export const givenModel: z.ZodType<GivenModel> = objectOf<GivenModel>({
  ...pricedModel,
  options: optional(jsonObject),
})

/** An agent as a ledger records it. */
export const agentDefinition: z.ZodType<AgentDefinition> = objectOf<AgentDefinition>({
  model: modelRef,
  instructions: text,
  tools: z.array(toolDefinition),
  parallelToolCalls: flag,
  digest: text,
  maxOutputTokens: optional(amount),
  price: optional(price),
  maxWebSearches: optional(maxWebSearches),
  modelSettings: optional(modelSettings),
  onRefusal: optional(refusalPolicy),
  fallbacks: optional(z.array(objectOf<FallbackModel>(pricedModel))),
  guardrails: optional(
    z.array(
      objectOf<GuardrailDefinition>({
        name: text,
        on: z.enum(guardedThings),
        beside: optional(z.literal(true)),
      }),
    ),
  ),
  output: optional(
    objectOf<OutputDefinition>({ schema: jsonObject, wrapped: optional(z.literal(true)), maxRepairs: count }),
  ),
  handoffs: optional(
    z.array(objectOf<HandoffDefinition>({ tool: text, to: text, back: optional(z.literal(true)) })),
  ),
  summarizer: optional(objectOf<SummarizerDefinition>({ ...pricedModel, instructions: text })),
  policy: optional(agentPolicy),
})
