import { summaryInstructions } from '../machine/compaction.ts'
import { digestOf } from '../machine/digest.ts'
import type { Model } from '../ports/model.ts'
import type { AgentDefinition } from '../vocabulary/agent-definition.ts'
import type { ModelRef } from '../vocabulary/content.ts'
import type { Json } from '../vocabulary/json.ts'
import { present } from '../vocabulary/present.ts'
import type { AgentOptions } from './agent.ts'
import type { HandoffTarget } from './handoff.ts'
import type { OutputReader } from './output-schema.ts'

/** How often the model may try again when its answer does not fit, where the agent does not say. */
const REPAIRS = 2

/** What an agent's options were made into. */
interface Made {
  readonly handoffs: readonly HandoffTarget[]
  readonly output: OutputReader<unknown> | undefined
  readonly summarizer: Model | undefined
}

/** What the ledger records of an agent: all that its models are told, and nothing of its code. */
export function definitionOf(
  options: AgentOptions<never> | AgentOptions<unknown>,
  { handoffs, output, summarizer }: Made,
): AgentDefinition {
  const { instructions, parallelToolCalls = true, maxOutputTokens, fallbacks = [], guardrails = [] } = options
  const tools = (options.tools ?? []).map(({ name, description, inputSchema }) => ({
    ...{ name, description, inputSchema },
  }))
  const said = {
    ...{ model: refOf(options.model), instructions, tools, parallelToolCalls },
    ...present({
      maxOutputTokens,
      fallbacks: some(fallbacks.map((model) => ({ model: refOf(model) }))),
      guardrails: some(guardrails.map(guardrailOf)),
      output: output && { schema: output.jsonSchema, repairsMax: options.outputRepairsMax ?? REPAIRS },
      handoffs: some(
        handoffs.map(({ to, agent, tool }) => ({
          ...{ tool: tool.name, to },
          ...(agent === undefined && { back: true as const }),
        })),
      ),
      summarizer: summarizer && {
        model: refOf(summarizer),
        instructions: options.compaction?.instructions ?? summaryInstructions,
      },
    }),
  }
  return { ...said, digest: digestOf(said as unknown as Json) }
}

function guardrailOf(
  guardrail: NonNullable<AgentOptions['guardrails']>[number],
): NonNullable<AgentDefinition['guardrails']>[number] {
  const { name, on } = guardrail
  return { name, on, ...(on === 'input' && guardrail.beside && { beside: true as const }) }
}

function some<T>(items: readonly T[]): readonly T[] | undefined {
  return items.length > 0 ? items : undefined
}

function refOf({ provider, api, modelId }: Model): ModelRef {
  return { provider, api, modelId }
}
