import { summaryInstructions } from '../../machine/compaction.ts'
import { type AgentDefinition, digested } from '../../events/agent-definition.ts'
import type { Model } from '../../models/model.ts'
import type { Tool } from '../../tools/tool.ts'
import type { MaxWebSearches } from '../../events/usage.ts'
import { askedSchema } from '../../events/answer-schema.ts'
import type { ModelRef } from '../../events/content.ts'
import { deepFreezeOnce, omitUndefined } from '../../values/json.ts'
import type { RefusalPolicy } from '../../events/model-request.ts'
import type { AgentOptions, HandoffTarget } from '../agent/agent.ts'
import { policyOf } from './agent-policy-of.ts'
import { definedGuardrail } from '../agent/guardrail.ts'

import { recordedSettings } from '../../events/model-settings-check.ts'
import type { OutputReader } from '../schema/output-schema.ts'

/** How often the model may try again when its answer does not fit, where the agent does not say. */
const REPAIRS = 2

/** What an agent's options were made into. */
interface Made {
  readonly handoffs: readonly HandoffTarget[]
  readonly output: OutputReader<unknown> | undefined
  readonly summarizer: Model | undefined
}

/** Options with the tools that do not change from turn to turn. */
type ListedOptions = AgentOptions<unknown> & { readonly tools: readonly Tool[] }

/** Returns what the ledger records of an agent: everything that its models see, and none of its code. */
export function definitionOf(
  options: ListedOptions,
  { handoffs, output, summarizer }: Made,
): AgentDefinition {
  const { parallelToolCalls = true, maxOutputTokens, fallbacks = [], guardrails = [] } = options
  const tools = options.tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    inputSchema,
  }))
  const body = {
    model: refOf(options.model),
    instructions: textOf(options.instructions),
    tools,
    parallelToolCalls,
    ...omitUndefined({
      maxOutputTokens,
      modelSettings: recordedSettings(options.modelSettings),
      maxWebSearches: maxSearchesOf(options.model),
      fallbacks: some(
        fallbacks.map((model) => ({
          model: refOf(model),
          ...omitUndefined({ maxWebSearches: maxSearchesOf(model) }),
        })),
      ),
      onRefusal: refusalPolicyOf(options.onRefusal),
      guardrails: some(guardrails.map(definedGuardrail)),
      output: output && {
        ...askedSchema(output.jsonSchema),
        maxRepairs: options.maxOutputRepairs ?? REPAIRS,
      },
      handoffs: some(
        handoffs.map(({ to, agent, tool }) => ({
          tool: tool.name,
          to,
          ...(agent === undefined && { back: true as const }),
        })),
      ),
      summarizer: summarizer && {
        model: refOf(summarizer),
        instructions: options.compaction?.instructions ?? summaryInstructions,
      },
      policy: policyOf(options, summarizer),
    }),
  }
  return deepFreezeOnce(digested(body))
}

/** Instructions made for one run are only in the definition of that run. */
function textOf(instructions: AgentOptions<unknown>['instructions']): string {
  return typeof instructions === 'string' ? instructions : ''
}

/** A policy that decides something. */
function refusalPolicyOf(policy: RefusalPolicy | undefined): RefusalPolicy | undefined {
  const decided: RefusalPolicy = omitUndefined({ ...policy })
  return Object.keys(decided).length > 0 ? decided : undefined
}

function some<T>(items: readonly T[]): readonly T[] | undefined {
  return items.length > 0 ? items : undefined
}

/** None and 0 say the same. */
function maxSearchesOf({ maxWebSearches = 0 }: Model): MaxWebSearches | undefined {
  return maxWebSearches === 0 ? undefined : maxWebSearches
}

function refOf({ provider, api, modelId }: Model): ModelRef {
  return { provider, api, modelId }
}
