import { ConfigurationError } from '../errors.ts'
import { requireLimits, requireModel, requireNumber, requireRetry, requireTools } from './agent-check.ts'
import type { ApprovalPolicy } from './call-check.ts'
import { digestOf } from '../machine/digest.ts'
import type { Compaction, Rules } from '../machine/rules.ts'
import type { Model } from '../ports/model.ts'
import type { Tool } from '../ports/tool.ts'
import type { AgentDefinition } from '../vocabulary/agent-definition.ts'
import type { ModelRef } from '../vocabulary/content.ts'
import type { Json } from '../vocabulary/json.ts'
import { present } from '../vocabulary/present.ts'
import { defaultLimits, type Limits, type RetryPolicy } from '../vocabulary/limits.ts'

/** What an agent is put together from. */
export interface AgentOptions {
  /** Names the agent in the ledger: a resume finds it by this name. */
  readonly name: string
  readonly instructions: string
  readonly model: Model
  readonly tools?: readonly Tool[]
  /** Maxima of each run; `defaultLimits` stand where none is named. */
  readonly limits?: Limits
  /** Whether the model may ask for several tools in one reply; it may by default. */
  readonly parallelToolCalls?: boolean
  /** Output tokens of one reply at most; the adapter's own bound where not given. */
  readonly maxOutputTokens?: number
  /** How failed model calls are tried again; `defaultRetryPolicy` where nothing is said. */
  readonly retry?: Partial<RetryPolicy>
  /** Models that take over, in order, when the one before them is given up. */
  readonly fallbacks?: readonly Model[]
  /** The agent's own say about which calls a person is asked about, beside that of each tool. */
  readonly approval?: ApprovalPolicy
  /** Ends the run as `stopped` before another model call, when it answers true. Pure. */
  readonly stopWhen?: Rules['stopWhen']
  /** Changes a turn before it is asked: model, tools, instructions, what is shown. Pure; what it changes is on record. */
  readonly prepareTurn?: Rules['prepareTurn']
  /** How a history that grows too long is made shorter in what the model sees. */
  readonly compaction?: Compaction
}

/** An agent: a model, what it is told, and what it may use. Made by `defineAgent`. */
export interface Agent {
  readonly name: string
  readonly instructions: string
  readonly model: Model
  readonly tools: readonly Tool[]
  readonly limits: Limits
  readonly parallelToolCalls: boolean
  readonly retry: Partial<RetryPolicy>
  readonly fallbacks: readonly Model[]
  readonly approval?: ApprovalPolicy
  readonly rules: Rules
  /** What the ledger records of it. */
  readonly definition: AgentDefinition
}

/** Puts an agent together. Throws a `ConfigurationError` for what could not work. */
export function defineAgent(options: AgentOptions): Agent {
  const {
    name,
    instructions,
    model,
    tools = [],
    parallelToolCalls = true,
    retry = {},
    fallbacks = [],
    approval,
    stopWhen,
    prepareTurn,
    compaction,
  } = options
  if (typeof name !== 'string' || name.trim() === '') {
    throw new ConfigurationError(
      'An agent needs a name: the ledger records it, and a resume finds the agent by it.',
    )
  }
  if (typeof instructions !== 'string') {
    throw new ConfigurationError(`Agent ${name} needs instructions, as text; give '' for none.`)
  }
  for (const each of [model, ...fallbacks]) requireModel(name, each)
  requireTools(name, tools)
  requireNumber(`maxOutputTokens of agent ${name}`, options.maxOutputTokens, 1)
  requireRetry(name, retry)
  const limits = { ...defaultLimits, ...options.limits }
  requireLimits(name, limits)
  return {
    ...{ name, instructions, model, tools, limits, parallelToolCalls, retry, fallbacks },
    ...present({ approval }),
    rules: present({ stopWhen, prepareTurn, compaction }),
    definition: definitionOf(options),
  }
}

function definitionOf(options: AgentOptions): AgentDefinition {
  const { instructions, parallelToolCalls = true, maxOutputTokens, fallbacks = [] } = options
  const tools = (options.tools ?? []).map(({ name, description, inputSchema }) => ({
    name,
    description,
    inputSchema,
  }))
  const said = {
    ...{ model: refOf(options.model), instructions, tools, parallelToolCalls },
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(fallbacks.length > 0 && { fallbacks: fallbacks.map((model) => ({ model: refOf(model) })) }),
  }
  return { ...said, digest: digestOf(said as unknown as Json) }
}

function refOf({ provider, api, modelId }: Model): ModelRef {
  return { provider, api, modelId }
}
