import { ConfigurationError } from '../../values/errors.ts'
import {
  anyFunction,
  anyText,
  fields,
  filledText,
  functionOr,
  listOf,
  maybe,
  milliseconds,
  numberFrom,
  oneOf,
  type OptionCheck,
  plainFunction,
  requireOptions,
  trueOrFalse,
  valueThat,
} from '../../values/option.ts'
import type { Tool } from '../../tools/tool.ts'
import type { RefusalPolicy } from '../../events/model-request.ts'
import { type GivenLimits, leastResultChars } from '../../events/limits.ts'
import type { AgentOptions, CompactionOptions, ModelTimeouts } from './agent.ts'
import { guardrail, requireGuardrailNames } from './guardrail.ts'
import { someOutputStream } from '../output/output-stream.ts'
import { someSettings } from '../../events/model-settings-check.ts'
import {
  calledModel,
  definedAgent,
  isDefinedAgent,
  offeredTool,
  retryPolicy,
  someRecording,
  someLimits,
} from './part-check.ts'

const compaction = fields<CompactionOptions>({
  maxContextTokens: numberFrom(0),
  keepMessages: numberFrom(0, { whole: true }),
  summarize: maybe(functionOr(calledModel)),
  instructions: maybe(anyText),
})

const timeouts = fields<ModelTimeouts>({
  idleMs: maybe(numberFrom(1)),
  totalMs: maybe(numberFrom(1)),
  prepareMs: maybe(milliseconds),
})

const refusalPolicy = fields<RefusalPolicy>({
  history: maybe(oneOf(['keep', 'leave_out'])),
  fallback: maybe(trueOrFalse),
})

const handoffTarget = valueThat(
  'an agent made with defineAgent, handoff(agent) or handBack(name)',
  (value) =>
    isDefinedAgent(value) ||
    (typeof value === 'object' && value !== null && 'tool' in value && 'to' in value),
)

/** Whom an agent may hand over to, where it is a list. */
export const handoffList: OptionCheck = listOf(handoffTarget)

const schema = valueThat(
  'a schema: z.object({ … }), another Standard Schema, or a JSON Schema',
  (value) => (typeof value === 'object' || typeof value === 'function') && value !== null,
)

function hasTools(value: unknown): boolean {
  const { tools, offered } = Object(value) as { readonly tools?: unknown; readonly offered?: unknown }
  return Array.isArray(tools) && (offered === undefined || typeof offered === 'function')
}

/** What `defineAgent` takes. */
const agentOptions = fields<AgentOptions<unknown>>(
  {
    name: filledText,
    description: maybe(anyText),
    instructions: functionOr(anyText),
    model: calledModel,
    tools: maybe(functionOr(listOf(offeredTool))),
    toolSource: maybe(valueThat('an object whose tools are a list', hasTools)),
    limits: maybe(someLimits),
    parallelToolCalls: maybe(trueOrFalse),
    maxOutputTokens: maybe(numberFrom(1, { whole: true })),
    modelSettings: maybe(someSettings),
    retry: maybe(retryPolicy),
    timeouts: maybe(timeouts),
    fallbacks: maybe(listOf(calledModel)),
    onRefusal: maybe(refusalPolicy),
    maxResultChars: maybe(numberFrom(leastResultChars, { whole: true })),
    approval: maybe(anyFunction),
    guardrails: maybe(listOf(guardrail)),
    handoffs: maybe(functionOr(handoffList)),
    output: maybe(schema),
    maxOutputRepairs: maybe(numberFrom(0, { whole: true })),
    stopWhen: maybe(plainFunction),
    prepareTurn: maybe(anyFunction),
    compaction: maybe(compaction),
    recording: maybe(someRecording),
    outputStream: maybe(someOutputStream),
  },
  {
    system: 'instructions',
    systemPrompt: 'instructions',
    prompt: 'instructions',
    schema: 'output',
    responseFormat: 'output',
    output_schema: 'output',
    maxTurns: 'limits.maxTurns',
    maxSteps: 'limits.maxTurns',
    temperature: 'modelSettings.temperature',
    topP: 'modelSettings.topP',
    seed: 'modelSettings.seed',
    stop: 'modelSettings.stop',
    providerOptions: 'modelSettings.providerOptions',
    maxRetries: 'retry.maxAttempts',
    agents: 'handoffs',
    subagents: 'handoffs',
    callModelInputFilter: 'prepareTurn',
    hooks: 'prepareTurn',
    experimental_transform: 'outputStream',
    transforms: 'outputStream.transforms',
  },
)

/** Refuses options of which no agent could be made. */
export function requireAgentOptions(options: AgentOptions<unknown>): void {
  const { name } = Object(options) as { readonly name?: unknown }
  requireOptions(
    typeof name === 'string' && name ? `defineAgent (${name})` : 'defineAgent',
    agentOptions,
    options,
  )
  const { tools = [], toolSource } = options
  if (typeof tools !== 'function') requireTools(name as string, tools)
  else if (toolSource) {
    throw new ConfigurationError(
      `defineAgent (${options.name}): tools is a function, and toolSource is given: both decide which tools a turn offers. Give tools as a list, or let the function also return the tools of the source.`,
    )
  }
  requireGuardrailNames(options.name, options.guardrails ?? [])
}

/** Refuses what `defineAgent` has not made. */
export function requireAgent(agent: unknown): void {
  requireOptions('The runtime', definedAgent, agent, 'the given agent')
}

/** Refuses tools that a model could not tell from each other. */
export function requireTools(agent: string, tools: readonly Tool[]): void {
  const names = new Set<string>()
  for (const { name } of tools) {
    if (names.has(name)) {
      throw new ConfigurationError(
        `Agent ${agent} has two tools named ${name}, and a model could not tell them apart. Rename one.`,
      )
    }
    names.add(name)
  }
}

/** Refuses limits that are no maxima. */
export function requireLimits(agent: string, limits: GivenLimits): void {
  requireOptions(`A run of agent ${agent}`, someLimits, limits, 'limits')
}
