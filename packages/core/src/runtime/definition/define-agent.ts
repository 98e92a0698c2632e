import { answerOf } from '../../values/option.ts'
import type { Rules } from '../../machine/rules.ts'
import { deepFreezeOnce, type Json, type JsonObject, omitUndefined } from '../../values/json.ts'
import { defaultLimits } from '../../events/limits.ts'
import type { Tool } from '../../tools/tool.ts'
import type { Agent, AgentOptions, CompactionOptions, HandoffTarget, ToolsInTurn } from '../agent/agent.ts'
import { handoffList, requireAgentOptions, requireTools } from '../agent/agent-check.ts'
import { definitionOf } from './agent-definition-of.ts'
import { handOffRule, targetOf } from './handoff.ts'
import { sourcedDefinitions } from './sourced-tools.ts'
import { schemaReader } from '../schema/output-schema.ts'

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
