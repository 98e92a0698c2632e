import {
  type AgentDefinition,
  type AgentPolicy,
  digested,
  type PinnedModel,
  type ToolPolicy,
} from '../events/agent-definition.ts'
import { askedSchema } from '../events/answer-schema.ts'
import type { ModelRef } from '../events/content.ts'
import { defaultLimits } from '../events/limits.ts'
import { recordedSettings } from '../events/model-settings-check.ts'
import type { MaxWebSearches } from '../events/usage.ts'
import { summaryInstructions } from '../machine/compaction.ts'
import type { Rules } from '../machine/rules.ts'
import type { Model } from '../models/model.ts'
import { recordedOutput } from '../models/output.ts'
import { definedGuardrail } from '../tools/guardrails.ts'
import { type OutputReader, schemaReader } from '../tools/tool-schema.ts'
import type { Tool } from '../tools/tool.ts'
import { deepFreezeOnce, type Json, type JsonObject, omitUndefined } from '../values/json.ts'
import { answerOf } from '../values/option.ts'
import {
  type Agent,
  type AgentOptions,
  type CompactionOptions,
  handoffList,
  type HandoffTarget,
  requireAgentOptions,
  requireTools,
  type ToolsInTurn,
  unlessEmpty,
} from './agent.ts'
import { handOffRule, targetOf } from './handoff.ts'
import { sourcedDefinitions } from './source-tools.ts'

/** The recorded policy of an agent: how its runs are driven. */
function policyOf(
  {
    limits,
    retry,
    timeouts,
    compaction,
    approval,
    maxResultChars,
    recording,
    outputStream,
    tools,
    model,
    fallbacks = [],
  }: AgentOptions<unknown> & { readonly tools: readonly Tool[] },
  summarizer: Model | undefined,
): AgentPolicy {
  const models = [model, ...fallbacks, ...(summarizer ? [summarizer] : [])]
  return {
    limits: { ...defaultLimits, ...omitUndefined({ ...limits }) },
    ...omitUndefined({
      retry: unlessEmpty(retry),
      timeouts: unlessEmpty(timeouts),
      compaction: compaction && {
        maxContextTokens: compaction.maxContextTokens,
        keepMessages: compaction.keepMessages,
      },
      tools: tools.length > 0 ? tools.map(toolPolicyOf) : undefined,
      maxResultChars,
      approval: approval ? (true as const) : undefined,
      models: pinnedModels(models),
      recording: unlessEmpty(recording),
      outputStream: recordedOutput(outputStream),
    }),
  }
}

function toolPolicyOf({ name, effect, recovery, ...rest }: Tool): ToolPolicy {
  const { timeoutMs, quietMs, retry, maxResultChars, serial, maxConcurrency, repeats, approval, origin } =
    rest
  const limits = omitUndefined({ timeoutMs, quietMs, retry, maxResultChars, serial, maxConcurrency, repeats })
  return { name, effect, recovery, ...limits, ...omitUndefined({ approval, origin }) }
}

function pinnedModels(models: readonly Model[]): readonly PinnedModel[] | undefined {
  const pinned = models.flatMap((model): readonly PinnedModel[] => {
    const { provider, api, modelId } = model
    const settings = adapterSettings(model)
    return Object.keys(settings).length > 0 ? [{ model: { provider, api, modelId }, ...settings }] : []
  })
  return pinned.length > 0 ? pinned : undefined
}

/** The recorded settings of a model's adapter. */
export function adapterSettings({ pinnedOptions = {}, additions = [] }: Model): Omit<PinnedModel, 'model'> {
  return {
    ...(Object.keys(pinnedOptions).length > 0 && { options: pinnedOptions }),
    ...(additions.length > 0 && { additions }),
  }
}

/** How often the model may try again when its answer does not fit, where the agent does not say. */
const REPAIRS = 2

interface Made {
  readonly handoffs: readonly HandoffTarget[]
  readonly output: OutputReader<unknown> | undefined
  readonly summarizer: Model | undefined
}

/** Options with the tools that do not change from turn to turn. */
type ListedOptions = AgentOptions<unknown> & { readonly tools: readonly Tool[] }

/** Returns what the ledger records of an agent: everything that its models see, and none of its code. */
function definitionOf(options: ListedOptions, { handoffs, output, summarizer }: Made): AgentDefinition {
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
      onRefusal: unlessEmpty(options.onRefusal),
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

/**
 * Puts an agent together. What it answers is a text; with an `output`, what its Standard Schema gives out, or JSON where
 * it is a JSON Schema. Throws a `ConfigurationError` for what could not work.
 */
export function defineAgent<Context = unknown>(
  options: AgentOptions<Json, Context> & { readonly output: JsonObject },
): Agent<Json, Context>
export function defineAgent<Output = string, Context = unknown>(
  options: AgentOptions<Output, Context>,
): Agent<Output, Context>
export function defineAgent(options: AgentOptions<unknown>): Agent<unknown> {
  requireAgentOptions(options)
  const { name, instructions, model, limits, compaction, description, approval, stopWhen, prepareTurn } =
    options
  const { listed, toolsInTurn } = toolsOf(options)
  const { parallelToolCalls = true, retry = {}, fallbacks = [], guardrails = [] } = options
  const { timeouts = {}, toolSource, maxResultChars, outputStream } = options
  const output = options.output && schemaReader<unknown>(`output of agent ${name}`, options.output)
  const summarize = compaction?.summarize
  const summarizer = typeof summarize === 'object' ? summarize : undefined
  // Agents may name each other in a circle, so whom one hands over to is looked at when it is first needed.
  const later = once(() => {
    const handoffs = handoffsOf(options).map((target) => targetOf(target))
    const all = [...listed, ...handoffs.map(({ tool }) => tool)]
    requireTools(name, all)
    const definition = definitionOf({ ...options, tools: all }, { handoffs, output, summarizer })
    return { handoffs, tools: all, definition }
  })
  return {
    name,
    instructions,
    model,
    parallelToolCalls,
    timeouts,
    fallbacks,
    guardrails,
    retry: omitUndefined({ ...retry }),
    // Each run of the agent records them.
    limits: deepFreezeOnce({ ...defaultLimits, ...omitUndefined({ ...limits }) }),
    ...omitUndefined({ description, approval, maxResultChars, output, outputStream, summarizer }),
    ...omitUndefined({ toolSource, toolsInTurn }),
    rules: {
      ...omitUndefined({ stopWhen, prepareTurn, compaction: compaction && compactionRule(compaction) }),
      ...(toolSource && {
        sourcedTools: (state) => sourcedDefinitions({ name, tools: later().tools, toolSource }, state),
      }),
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

/** The tools that an agent has in every turn, and what names more of them for one. */
function toolsOf({ tools = [] }: AgentOptions<unknown>): {
  readonly listed: readonly Tool[]
  readonly toolsInTurn?: ToolsInTurn
} {
  return typeof tools === 'function' ? { listed: [], toolsInTurn: tools } : { listed: tools }
}

function handoffsOf<Context>({
  name,
  handoffs = [],
}: Pick<AgentOptions<unknown, Context>, 'name' | 'handoffs'>): readonly (
  | Agent<unknown, Context>
  | HandoffTarget<Context>
)[] {
  const named = typeof handoffs === 'function' ? handoffs : () => handoffs
  return answerOf(`handoffs of the agent ${name}`, named, handoffList)
}

function compactionRule({
  maxContextTokens,
  keepMessages,
  summarize,
}: CompactionOptions): Rules['compaction'] {
  const rule = { maxContextTokens, keepMessages }
  return typeof summarize === 'function' ? { ...rule, summarize } : rule
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
