import { type AgentDefinition, type AnyContext, withDigest } from '../events/agent-definition.ts'
import { type Message, type ModelRef, isSameModel } from '../events/content.ts'
import type { Price } from '../events/usage.ts'
import type { Model } from '../models/model.ts'
import {
  type OutputStreamOptions,
  joinOutputs,
  toRecordedOutput,
  someOutputStream,
} from '../models/output.ts'
import { findCheckedPrice, type Prices } from '../models/prices.ts'
import { type ApprovalPolicy, combinePolicies } from '../tools/check-calls.ts'
import {
  toGuardrailDefinition,
  guardrail,
  type Guardrail,
  requireGuardrailNames,
} from '../tools/guardrails.ts'
import { ConfigurationError } from '../values/errors.ts'
import { deepFreezeOnce, omitUndefined } from '../values/json.ts'
import {
  anyFunction,
  anyObject,
  listOf,
  maybe,
  type OptionChecks,
  plainFunction,
  requireOptions,
  trueOrFalse,
} from '../values/option.ts'
import { isAgentTool } from './agent-tool.ts'
import { type Agent, definedAgent, type PrepareTurn } from './agent.ts'
import { foldedHistory, handOffRule } from './handoff.ts'
import { filterInput, joinPreparations } from './prepare-turn.ts'
import { listRules } from './run-rules.ts'

/**
 * Options that apply beside an agent's own: of a runtime, to every agent that it drives; of a run, to every agent of
 * the run. Guardrails and policies are added, filters are replaced.
 */
export interface RuntimeRules {
  /**
   * Decides about each call of every agent, including agents that take a conversation over, which may have an
   * `approval` of their own. The strictest decides. That of a runtime also decides in the runs of agents that work as
   * tools.
   */
  readonly approval?: ApprovalPolicy | undefined
  /** Guardrails of every agent, which check before its own. */
  readonly guardrails?: readonly Guardrail[] | undefined
  /** Selects the messages that the next agent sees after a handoff that has no `filter` of its own. */
  readonly handoffFilter?: HistoryFilter | undefined
  /**
   * After a handoff that has no `filter` of its own, the next agent sees the past folded into one message, as
   * `foldHistory` does it; `handoffFilter` comes first.
   */
  readonly nestHandoffHistory?: boolean | undefined
  /**
   * Returns the messages that `nestHandoffHistory: true` puts in place of the past, instead of the one of `foldHistory`.
   * Without that it is refused.
   */
  readonly handoffHistoryMapper?: HistoryFilter | undefined
  /**
   * Returns the messages that each model call sends, in place of the history: what `prepareTurn` does, for messages
   * alone. It gets those that `prepareTurn` returned. It may be async.
   */
  readonly inputFilter?:
    | ((
        messages: readonly Message[],
        context: AnyContext,
      ) => readonly Message[] | Promise<readonly Message[]>)
    | undefined
  /** Changes each turn of every agent, after the agent's own `prepareTurn`: it gets the request that this returned. */
  readonly prepareTurn?: PrepareTurn | undefined
  /** Changes the text of every agent's replies before subscribers see it, after the agent's own. */
  readonly outputStream?: OutputStreamOptions | undefined
}

type HistoryFilter = (messages: readonly Message[]) => readonly Message[]

export const someRules: OptionChecks<RuntimeRules> = {
  approval: maybe(anyFunction),
  guardrails: maybe(listOf(guardrail)),
  handoffFilter: maybe(plainFunction),
  nestHandoffHistory: maybe(trueOrFalse),
  handoffHistoryMapper: maybe(plainFunction),
  inputFilter: maybe(anyFunction),
  prepareTurn: maybe(anyFunction),
  outputStream: maybe(someOutputStream),
}

/**
 * An agent with the rules of a runtime, as that runtime drives it: for a replay, too. `definitionOf` returns the definition of
 * an agent that it hands over to.
 */
function applyRules<Output>(
  agent: Agent<Output>,
  rules: RuntimeRules,
  definitionOf: (agent: Agent<unknown>) => AgentDefinition,
): Agent<Output> {
  const { approval, guardrails = [], inputFilter } = rules
  const { handoffFilter, nestHandoffHistory, handoffHistoryMapper = foldedHistory } = rules
  const filter = handoffFilter ?? (nestHandoffHistory ? handoffHistoryMapper : undefined)
  const outputStream = joinOutputs(agent.outputStream, rules.outputStream)
  const prepareTurn = [rules.prepareTurn, inputFilter && filterInput(inputFilter)].reduce(
    joinPreparations,
    agent.rules.prepareTurn,
  )
  const all = [...guardrails, ...agent.guardrails]
  requireGuardrailNames(agent.name, all)
  const handoffs = agent.handoffs.map((target) =>
    filter && target.agent && !target.filter ? { ...target, filter } : target,
  )
  let { definition } = agent
  if (guardrails.length > 0) {
    const recorded = [...guardrails.map(toGuardrailDefinition), ...(definition.guardrails ?? [])]
    definition = withDigest({ ...definition, guardrails: recorded })
  }
  const output = rules.outputStream && toRecordedOutput(outputStream)
  if (output && definition.policy)
    definition = withDigest({ ...definition, policy: { ...definition.policy, outputStream: output } })
  return {
    ...agent,
    ...omitUndefined({ approval: combinePolicies(approval, agent.approval), outputStream }),
    guardrails: all,
    definition,
    handoffs,
    rules: {
      ...agent.rules,
      ...omitUndefined({ prepareTurn }),
      handOff: handOffRule(() => handoffs, definitionOf),
    },
  }
}

/** Refuses a mapper that no handoff would ask. */
function requireNesting({ handoffHistoryMapper, nestHandoffHistory }: RuntimeRules): void {
  if (handoffHistoryMapper === undefined || nestHandoffHistory) return
  throw new ConfigurationError(
    'A handoffHistoryMapper is given, and nestHandoffHistory is not true: no handoff would ask it. Give nestHandoffHistory: true with it, or a handoffFilter instead.',
  )
}

/** The rules of a run over those of its runtime. */
function mergeRules(of: RuntimeRules, own: RuntimeRules): RuntimeRules {
  // A run that says how its handoffs show the past is not asked about the filter of its runtime.
  const handoff = own.nestHandoffHistory === undefined ? of.handoffFilter : undefined
  return {
    approval: combinePolicies(of.approval, own.approval),
    guardrails: [...(of.guardrails ?? []), ...(own.guardrails ?? [])],
    handoffFilter: own.handoffFilter ?? handoff,
    nestHandoffHistory: own.nestHandoffHistory ?? of.nestHandoffHistory,
    handoffHistoryMapper: own.handoffHistoryMapper ?? of.handoffHistoryMapper,
    inputFilter: own.inputFilter ?? of.inputFilter,
    prepareTurn: joinPreparations(of.prepareTurn, own.prepareTurn),
    outputStream: joinOutputs(of.outputStream, own.outputStream),
  }
}

/**
 * True for an agent that was made twice: both definitions are equal, and both run the same code. A resume
 * may then take either.
 */
export function isSameAgent(one: Agent<unknown>, other: Agent<unknown>): boolean {
  if (one.definition.digest !== other.definition.digest) return false
  const [mine, theirs] = [listCode(one), listCode(other)]
  return mine.length === theirs.length && mine.every((part, index) => part === theirs[index])
}

/** Returns the code of an agent, in order. Handoffs are in the definition. */
function listCode(agent: Agent<unknown>): readonly unknown[] {
  const { model, summarizer, fallbacks, approval, guardrails, tools, rules } = agent
  const bodies = tools.filter(({ handoff }) => handoff === undefined)
  return [
    model,
    summarizer,
    approval,
    agent.toolSource,
    agent.toolsInTurn,
    rules.stopWhen,
    rules.prepareTurn,
    rules.compaction?.summarize,
    ...fallbacks,
    ...guardrails.map(({ check }) => check),
    ...bodies.map((tool) => (isAgentTool(tool) ? tool.agent : tool)),
  ]
}

/** The agents that a runtime knows, by the name that the ledger records, with what their models cost. */
export interface AgentRegistry {
  /**
   * Takes an agent in, with all that it may hand over to and that it has as tools. Throws a `ConfigurationError` if
   * another has its name.
   */
  readonly register: (agent: Agent<unknown>) => Agent<unknown>
  readonly find: (name: string) => Agent<unknown> | undefined
  readonly all: () => readonly Agent<unknown>[]
  readonly findPrice: (model: ModelRef) => Price | undefined
  /** Refuses rules of a new run that would never apply. */
  readonly requireUsed: (rules: RuntimeRules) => void
  /** The agents as one run has them: with rules of its own, and perhaps an agent in place of the known one of its name. */
  readonly inRun: (rules: RuntimeRules, own?: Agent<unknown>) => AgentRegistry
}

/** A runtime's agents; none at first. */
export function createAgentRegistry(prices: Prices, runtimeRules: RuntimeRules = {}): AgentRegistry {
  requireNesting(runtimeRules)
  const known = new Map<string, Agent<unknown>>()
  const sources = new Map<string, Agent<unknown>>()
  const ruled = (
    agent: Agent<unknown>,
    rules: RuntimeRules,
    toRegistered: AgentRegistry['register'],
  ): Agent<unknown> => {
    const own = applyRules(agent, rules, (next) => toRegistered(next).definition)
    return { ...own, definition: withPrices(own.definition, prices) }
  }
  const register = (agent: Agent<unknown>): Agent<unknown> => {
    requireOptions('The runtime', definedAgent, agent, 'the given agent')
    const { name, definition } = agent
    const other = known.get(name)
    const source = sources.get(name)
    if (other && (other === agent || source === agent || isSameAgent(source ?? other, agent))) return other
    if (other) {
      const what =
        other.definition.digest === definition.digest ? 'agents of different code' : 'different agents'
      throw new ConfigurationError(
        `Two ${what} are named ${name}; a resume could not tell which of them a run belongs to. Create an agent once and use it for every run, or rename one.`,
      )
    }
    const own = ruled(agent, runtimeRules, register)
    known.set(name, own)
    sources.set(name, agent)
    // Known before the others are looked at: agents may name each other in a circle.
    for (const next of listNeighbours(agent)) register(next)
    return own
  }
  const registry: AgentRegistry = {
    register,
    find: (name) => known.get(name),
    all: () => [...known.values()],
    findPrice: (model) => findCheckedPrice(prices, model),
    requireUsed: (rules) => {
      const nestHandoffHistory = rules.nestHandoffHistory ?? runtimeRules.nestHandoffHistory
      requireNesting({ ...rules, nestHandoffHistory })
    },
    inRun: (rules, own) => (own || listRules(rules).length > 0 ? viewFor(rules, own) : registry),
  }
  const viewFor = (rules: RuntimeRules, own: Agent<unknown> | undefined): AgentRegistry => {
    const merged = mergeRules(runtimeRules, rules)
    const seen = new Map<string, Agent<unknown>>()
    const find = (name: string): Agent<unknown> | undefined => {
      const source = name === own?.name ? own : sources.get(name)
      const found = seen.get(name) ?? (source && ruled(source, merged, registerInRun))
      if (found) seen.set(name, found)
      return found
    }
    const registerInRun = (agent: Agent<unknown>): Agent<unknown> => {
      if (agent.name !== own?.name) register(agent)
      return find(agent.name) ?? agent
    }
    return {
      ...registry,
      register: registerInRun,
      find,
      inRun: (more, other = own) => registry.inRun(more, other),
    }
  }
  return registry
}

/** Returns an agent with the rules of a runtime: for a replay, which gets the agents of the run. */
export function withRuntimeRules<Output>(agent: Agent<Output>, rules: RuntimeRules): Agent<Output> {
  requireOptions('withRuntimeRules', definedAgent, agent, 'the agent')
  requireOptions('withRuntimeRules', anyObject, rules, 'the second argument')
  requireNesting(rules)
  const toDefinition = (next: Agent<unknown>): AgentDefinition =>
    applyRules(next, rules, toDefinition).definition
  return applyRules(agent, rules, toDefinition)
}

/** The agents that a run of this one may reach: by handoffs, and as tools. */
function listNeighbours({ handoffs, tools }: Agent<unknown>): readonly Agent<unknown>[] {
  return [
    ...handoffs.flatMap(({ agent }) => (agent ? [agent] : [])),
    ...tools.flatMap((tool) => (isAgentTool(tool) ? [tool.agent] : [])),
  ]
}

/** An agent, and all that may come to work in its runs. */
export function listReachableAgents(agent: Agent<unknown>): readonly Agent<unknown>[] {
  return collectAgents(agent, listNeighbours)
}

/** An agent, and all that may take the conversation over in its run: without those that have runs of their own. */
export function listAgentsInRun(agent: Agent<unknown>): readonly Agent<unknown>[] {
  return collectAgents(agent, ({ handoffs }) =>
    handoffs.flatMap((target) => (target.agent ? [target.agent] : [])),
  )
}

function collectAgents(
  agent: Agent<unknown>,
  listNext: (agent: Agent<unknown>) => readonly Agent<unknown>[],
): readonly Agent<unknown>[] {
  const found = new Map<string, Agent<unknown>>()
  const visit = (each: Agent<unknown>): void => {
    if (found.has(each.name)) return
    found.set(each.name, each)
    listNext(each).forEach(visit)
  }
  visit(agent)
  return [...found.values()]
}

/** Each run of the agent records it: it is copied and frozen once. */
function withPrices(definition: AgentDefinition, prices: Prices): AgentDefinition {
  const findPrice = (model: ModelRef): { price?: Price } =>
    omitUndefined({ price: findCheckedPrice(prices, model) })
  const { fallbacks, summarizer } = definition
  return deepFreezeOnce({
    ...definition,
    ...findPrice(definition.model),
    ...(fallbacks && { fallbacks: fallbacks.map((each) => ({ ...each, ...findPrice(each.model) })) }),
    ...(summarizer && { summarizer: { ...summarizer, ...findPrice(summarizer.model) } }),
  })
}

/** The models that runs are given, as a runtime finds them by the names on record. */
export class KnownModels {
  readonly #agents: AgentRegistry
  #given: readonly Model[]

  constructor(agents: AgentRegistry, given: readonly Model[]) {
    this.#agents = agents
    this.#given = given
  }

  /** Makes a model known; of several with one name, the last. */
  add(model: Model): void {
    this.#given = [...this.#given.filter((known) => !isSameModel(known, model)), model]
  }

  /** A model that was given, or one of an agent. */
  find(ref: ModelRef): Model | undefined {
    const isIt = (model: Model | undefined): boolean => model !== undefined && isSameModel(model, ref)
    const given = this.#given.find(isIt)
    if (given) return given
    const agents = this.#agents.all()
    return agents.flatMap(({ model, fallbacks, summarizer }) => [model, ...fallbacks, summarizer]).find(isIt)
  }
}
