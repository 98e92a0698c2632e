import {
  type AgentDefinition,
  type AgentPolicy,
  withDigest,
  type PinnedModel,
  type ToolPolicy,
} from '../events/agent-definition.ts'
import { toAskedSchema } from '../events/answer-schema.ts'
import type { ModelRef } from '../events/content.ts'
import { defaultLimits } from '../events/limits.ts'
import { toRecordedSettings } from '../events/model-settings-check.ts'
import type { MaxWebSearches } from '../events/usage.ts'
import { summaryInstructions } from '../machine/compaction.ts'
import type { Model } from '../models/model.ts'
import { toRecordedOutput } from '../models/output.ts'
import { toGuardrailDefinition } from '../tools/guardrails.ts'
import { type OutputReader, createSchemaReader } from '../tools/tool-schema.ts'
import type { Tool } from '../tools/tool.ts'
import { deepFreezeOnce, type Json, type JsonObject, omitUndefined } from '../values/json.ts'
import { requireAnswer } from '../values/option.ts'
import {
  type Agent,
  type AgentOptions,
  handoffList,
  type HandoffTarget,
  requireAgentOptions,
  requireTools,
  omitIfEmpty,
} from './agent.ts'
import { handoff, handOffRule } from './handoff.ts'
import { listSourcedDefinitions } from './source-tools.ts'

/** The recorded policy of an agent: how its runs are driven. */
function toPolicy(
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
      retry: omitIfEmpty(retry),
      timeouts: omitIfEmpty(timeouts),
      compaction: compaction && {
        maxContextTokens: compaction.maxContextTokens,
        keepMessages: compaction.keepMessages,
      },
      tools: omitEmpty(
        tools.map(({ name, effect, recovery, ...tool }): ToolPolicy => {
          const { timeoutMs, quietMs, serial, maxConcurrency, repeats, background, origin } = tool
          const own = { timeoutMs, quietMs, retry: tool.retry, maxResultChars: tool.maxResultChars, serial }
          const more = { maxConcurrency, repeats, background, approval: tool.approval, origin }
          return { name, effect, recovery, ...omitUndefined({ ...own, ...more }) }
        }),
      ),
      maxResultChars,
      approval: approval ? (true as const) : undefined,
      models: omitEmpty(
        models.flatMap((each): readonly PinnedModel[] => {
          const settings = readAdapterSettings(each)
          return Object.keys(settings).length > 0 ? [{ model: toModelRef(each), ...settings }] : []
        }),
      ),
      recording: omitIfEmpty(recording),
      outputStream: toRecordedOutput(outputStream),
    }),
  }
}

/** The recorded settings of a model's adapter. */
export function readAdapterSettings({
  pinnedOptions = {},
  additions = [],
}: Model): Omit<PinnedModel, 'model'> {
  return {
    ...(Object.keys(pinnedOptions).length > 0 && { options: pinnedOptions }),
    ...(additions.length > 0 && { additions }),
  }
}

/** How often the model may try again when its answer does not fit, where the agent does not say. */
const REPAIRS = 2

/** Options with the tools that do not change from turn to turn. */
type ListedOptions = AgentOptions<unknown> & { readonly tools: readonly Tool[] }

/** Returns what the ledger records of an agent: everything that its models see, and none of its code. */
function toDefinition(
  options: ListedOptions,
  {
    handoffs,
    output,
    summarizer,
  }: {
    readonly handoffs: readonly HandoffTarget[]
    readonly output: OutputReader<unknown> | undefined
    readonly summarizer: Model | undefined
  },
): AgentDefinition {
  const { parallelToolCalls = true, maxOutputTokens, fallbacks = [], guardrails = [] } = options
  const tools = options.tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    inputSchema,
  }))
  const body = {
    model: toModelRef(options.model),
    // Instructions made for one run are only in the definition of that run.
    instructions: typeof options.instructions === 'string' ? options.instructions : '',
    tools,
    parallelToolCalls,
    ...omitUndefined({
      maxOutputTokens,
      modelSettings: toRecordedSettings(options.modelSettings),
      maxWebSearches: readMaxSearches(options.model),
      fallbacks: omitEmpty(
        fallbacks.map((model) => ({
          model: toModelRef(model),
          ...omitUndefined({ maxWebSearches: readMaxSearches(model) }),
        })),
      ),
      onRefusal: omitIfEmpty(options.onRefusal),
      guardrails: omitEmpty(guardrails.map(toGuardrailDefinition)),
      output: output && {
        ...toAskedSchema(output.jsonSchema),
        maxRepairs: options.maxOutputRepairs ?? REPAIRS,
      },
      handoffs: omitEmpty(
        handoffs.map(({ to, agent, tool }) => ({
          tool: tool.name,
          to,
          ...(agent === undefined && { back: true as const }),
        })),
      ),
      summarizer: summarizer && {
        model: toModelRef(summarizer),
        instructions: options.compaction?.instructions ?? summaryInstructions,
      },
      policy: toPolicy(options, summarizer),
    }),
  }
  return deepFreezeOnce(withDigest(body))
}

function omitEmpty<T>(items: readonly T[]): readonly T[] | undefined {
  return items.length > 0 ? items : undefined
}

/** None and 0 say the same. */
function readMaxSearches({ maxWebSearches = 0 }: Model): MaxWebSearches | undefined {
  return maxWebSearches === 0 ? undefined : maxWebSearches
}

function toModelRef({ provider, api, modelId }: Model): ModelRef {
  return { provider, api, modelId }
}

/**
 * Defines an agent. Its answer is a text; with `output` it is the output of that Standard Schema, or JSON for a JSON Schema.
 * Throws a `ConfigurationError` for what could not work.
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
  const { tools = [], handoffs: named = [], parallelToolCalls = true, retry = {}, fallbacks = [] } = options
  const { guardrails = [], timeouts = {}, toolSource, maxResultChars, outputStream } = options
  const [listed, toolsInTurn] = typeof tools === 'function' ? [[], tools] : [tools]
  const output = options.output && createSchemaReader<unknown>(`output of agent ${name}`, options.output)
  const summarize = compaction?.summarize
  const summarizer = typeof summarize === 'object' ? summarize : undefined
  let made: Pick<Agent<unknown>, 'handoffs' | 'tools' | 'definition'> | undefined
  // Agents may name each other in a circle, so whom one hands over to is looked at when it is first needed.
  const later = (): NonNullable<typeof made> => {
    if (made) return made
    const nameTargets = typeof named === 'function' ? named : () => named
    const targets = requireAnswer(`handoffs of the agent ${name}`, nameTargets, handoffList)
    const handoffs = targets.map((target) => ('tool' in target ? target : handoff(target)))
    const all = [...listed, ...handoffs.map(({ tool }) => tool)]
    requireTools(name, all)
    const definition = toDefinition({ ...options, tools: all }, { handoffs, output, summarizer })
    return (made = { handoffs, tools: all, definition })
  }
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
      ...omitUndefined({ stopWhen, prepareTurn }),
      ...(compaction && {
        compaction: {
          maxContextTokens: compaction.maxContextTokens,
          keepMessages: compaction.keepMessages,
          ...(typeof summarize === 'function' && { summarize }),
        },
      }),
      ...(toolSource && {
        sourcedTools: (state) => listSourcedDefinitions({ name, tools: later().tools, toolSource }, state),
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
