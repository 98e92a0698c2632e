import { ConfigurationError } from '../errors.ts'
import { definitionOf } from './agent-definition-of.ts'
import {
  requireCompaction,
  requireLimits,
  requireModel,
  requireNumber,
  requireRetry,
  requireTools,
} from './agent-check.ts'
import type { ApprovalPolicy } from './call-check.ts'
import { requireGuardrails, type Guardrail } from './guardrail.ts'
import { handOffRule, targetOf, type HandoffTarget } from './handoff.ts'
import { outputReader, type OutputReader, type OutputSchema } from './output-schema.ts'
import type { Rules } from '../machine/rules.ts'
import type { Model } from '../ports/model.ts'
import type { Tool } from '../ports/tool.ts'
import type { AgentDefinition } from '../vocabulary/agent-definition.ts'
import type { Message } from '../vocabulary/content.ts'
import { present } from '../vocabulary/present.ts'
import { defaultLimits, type Limits, type RetryPolicy } from '../vocabulary/limits.ts'

/** How a history that grows too long is made shorter in what the model sees. Nothing leaves the ledger. */
export interface CompactionOptions {
  /** The history is shortened before a call whose input is estimated to have more tokens than this. */
  readonly contextTokensMax: number
  /** How many of the newest messages stay as they are. */
  readonly keepMessages: number
  /**
   * What the older messages become: what a model sums them up as, or what a pure function says of them. Without it they
   * are left out.
   */
  readonly summarize?: Model | ((messages: readonly Message[]) => string)
  /** What a model that sums up is told; `summaryInstructions` where not given. */
  readonly instructions?: string
}

/** How long a model call may take, in milliseconds; a call that takes longer has failed, and is tried again. */
export interface ModelTimeouts {
  /** Without any report from the model. */
  readonly idleMs?: number
  /** From start to end. */
  readonly totalMs?: number
}

/** What an agent is put together from. */
export interface AgentOptions<Output = string> {
  /** Names the agent in the ledger: a resume finds it by this name. */
  readonly name: string
  /** What it is good for, as other agents' models read it. */
  readonly description?: string
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
  /** How long a model call may take; the adapter's own bounds where nothing is said. */
  readonly timeouts?: ModelTimeouts
  /** Models that take over, in order, when the one before them is given up. */
  readonly fallbacks?: readonly Model[]
  /** The agent's own say about which calls a person is asked about, beside that of each tool. */
  readonly approval?: ApprovalPolicy
  /** Policy as code, around the model and the tools. */
  readonly guardrails?: readonly Guardrail[]
  /** Whom it may hand the conversation over to. A function where agents name each other in a circle. */
  readonly handoffs?: Handoffs
  /** What the answer has to be; a text where nothing is said. */
  readonly output?: OutputSchema<Output>
  /** How often the model may try again when its answer does not fit; 2 where not given. */
  readonly outputRepairsMax?: number
  /** Ends the run as `stopped` before another model call, when it answers true. Pure. */
  readonly stopWhen?: Rules['stopWhen']
  /** Changes a turn before it is asked: model, tools, instructions, what is shown. Pure; what it changes is on record. */
  readonly prepareTurn?: Rules['prepareTurn']
  /** How a history that grows too long is made shorter in what the model sees. */
  readonly compaction?: CompactionOptions
}

/** Whom an agent may hand over to. */
export type Handoffs =
  | readonly (Agent<unknown> | HandoffTarget)[]
  | (() => readonly (Agent<unknown> | HandoffTarget)[])

/** An agent: a model, what it is told, and what it may use. Made by `defineAgent`. */
export interface Agent<Output = string> {
  readonly name: string
  readonly description?: string
  readonly instructions: string
  readonly model: Model
  /** Its tools, and those that hand over. */
  readonly tools: readonly Tool[]
  readonly limits: Limits
  readonly parallelToolCalls: boolean
  readonly retry: Partial<RetryPolicy>
  readonly timeouts: ModelTimeouts
  readonly fallbacks: readonly Model[]
  readonly approval?: ApprovalPolicy
  readonly guardrails: readonly Guardrail[]
  readonly handoffs: readonly HandoffTarget[]
  readonly output?: OutputReader<Output>
  /** The model that sums up. */
  readonly summarizer?: Model
  readonly rules: Rules
  /** What the ledger records of it. */
  readonly definition: AgentDefinition
}

/** Puts an agent together. Throws a `ConfigurationError` for what could not work. */
export function defineAgent<Output = string>(options: AgentOptions<Output>): Agent<Output> {
  requireOptions(options)
  const { name, instructions, model, limits, compaction, description, approval, stopWhen, prepareTurn } =
    options
  const { tools = [], parallelToolCalls = true, retry = {}, fallbacks = [], guardrails = [] } = options
  const { timeouts = {} } = options
  const output = options.output && outputReader(name, options.output)
  const summarize = compaction?.summarize
  const summarizer = typeof summarize === 'object' ? summarize : undefined
  // Agents may name each other in a circle, so whom one hands over to is looked at when it is first needed.
  const later = once(() => {
    const handoffs = handoffsOf(options).map(targetOf)
    const all = [...tools, ...handoffs.map(({ tool }) => tool)]
    requireTools(name, all)
    const definition = definitionOf({ ...options, tools: all }, { handoffs, output, summarizer })
    return { handoffs, tools: all, definition }
  })
  return {
    ...{ name, instructions, model, parallelToolCalls, retry, timeouts, fallbacks, guardrails },
    limits: { ...defaultLimits, ...limits },
    ...present({ description, approval, output, summarizer }),
    rules: {
      ...present({ stopWhen, prepareTurn, compaction: compaction && compactionRule(compaction) }),
      handOff: handOffRule(
        () => later().handoffs,
        (agent) => agent.definition,
      ),
    },
    get tools() {
      return later().tools
    },
    get handoffs() {
      return later().handoffs
    },
    get definition() {
      return later().definition
    },
  }
}

function requireOptions(options: AgentOptions<unknown>): void {
  const { name, instructions, model, tools = [], retry = {}, fallbacks = [], timeouts = {} } = options
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
  requireNumber(`outputRepairsMax of agent ${name}`, options.outputRepairsMax, 0)
  for (const [field, value] of Object.entries(timeouts))
    requireNumber(`timeouts.${field} of agent ${name}`, value, 1)
  requireRetry(name, retry)
  requireGuardrails(name, options.guardrails ?? [])
  requireCompaction(name, options.compaction)
  requireLimits(name, { ...defaultLimits, ...options.limits })
}

function handoffsOf({ handoffs = [] }: AgentOptions<unknown>): readonly (Agent<unknown> | HandoffTarget)[] {
  return typeof handoffs === 'function' ? handoffs() : handoffs
}

function compactionRule({
  contextTokensMax,
  keepMessages,
  summarize,
}: CompactionOptions): Rules['compaction'] {
  const rule = { contextTokensMax, keepMessages }
  return typeof summarize === 'function' ? { ...rule, summarize } : rule
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
