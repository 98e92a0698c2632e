import { type Agent, someLimits, omitIfEmpty } from '../agent/agent.ts'
import { readAdapterSettings } from '../agent/define-agent.ts'
import { toDefinitionIn } from '../agent/prepare-turn.ts'
import {
  type AgentRegistry,
  listAgentsInRun,
  listReachableAgents,
  type RuntimeRules,
} from '../agent/registry.ts'
import { listRules } from '../agent/run-rules.ts'
import {
  applyGivenModel,
  type FallbackModel,
  type GivenModel,
  type RecordingPolicy,
  type RunGiven,
  type RunLabels,
} from '../events/agent-definition.ts'
import type { StartCommand } from '../events/commands.ts'
import {
  correctMessage,
  type Message,
  message as messageSchema,
  type ModelRef,
  type ProviderState,
  type UserMessage,
  userMessage,
  type UserPart,
} from '../events/content.ts'
import { LAST_MOMENT } from '../events/event-parts.ts'
import { defaultRetryPolicy, type GivenLimits, type Limits } from '../events/limits.ts'
import { mergeSettings, type ModelSettings } from '../events/model-request.ts'
import { toRecordedSettings } from '../events/model-settings-check.ts'
import { computeSearchesCost } from '../events/usage.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { appendMessage, freezeMessages, createHistory, findPairingFault } from '../machine/history.ts'
import type { Model } from '../models/model.ts'
import { ConfigurationError } from '../values/errors.ts'
import type { RunId } from '../values/ids.ts'
import { deepFreeze, isJson, isSameJson, omitUndefined } from '../values/json.ts'
import { type Schema, requireOptions, textOr, valueThat } from '../values/option.ts'
import { formatFault, placeFault } from '../values/schema.ts'
import { formatErrorSentence } from '../values/text.ts'
import type { RunDefaults } from './runtime-parts.ts'
import type { Past } from './session.ts'

/** The command that starts a run of an agent, without a past. Throws a `ConfigurationError` for what could not work. */
export function startCommand(
  runId: RunId,
  agent: Agent<unknown>,
  input: UserMessage,
  {
    limits: own,
    defaults,
    given = {},
    register,
    context,
  }: {
    readonly limits?: GivenLimits
    /** Limits of the runtime: over the agent's, under the run's. */
    readonly defaults?: GivenLimits
    readonly given?: RunGiven
    readonly register: (agent: Agent<unknown>) => Agent<unknown>
    readonly context: unknown
  },
): StartCommand {
  if (own) requireOptions(`A run of agent ${agent.name}`, someLimits, own, 'limits')
  const limits =
    own || defaults
      ? { ...agent.limits, ...omitUndefined({ ...defaults }), ...omitUndefined({ ...own }) }
      : agent.limits
  if (limits.maxCostUsd !== undefined) requirePrices(agent, limits.maxCostUsd, { register, given })
  return {
    type: 'start',
    runId,
    agent: agent.name,
    definition: applyGivenModel(toDefinitionIn(agent, context), given.givenModel),
    limits,
    retry: { ...defaultRetryPolicy, ...agent.retry },
    ...given,
    input,
    ...(context !== undefined && { withContext: true as const }),
  }
}

/** Law 9 for money: refuses, before anything is spent, a budget for a model without a price. */
function requirePrices(
  agent: Agent<unknown>,
  maxCostUsd: number,
  {
    register,
    given,
  }: { readonly register: (agent: Agent<unknown>) => Agent<unknown>; readonly given: RunGiven },
): void {
  const agentsOfRun = new Set(listAgentsInRun(agent).map((each) => each.name))
  for (const { name, definition: own } of listReachableAgents(agent).map(register)) {
    // Agents that work as tools have runs of their own, with their own models.
    const definition = agentsOfRun.has(name) ? applyGivenModel(own, given.givenModel) : own
    const { fallbacks = [], summarizer } = definition
    const models = [definition, ...fallbacks, ...(summarizer ? [summarizer] : [])]
    const unknown = models.find(({ price }) => price === undefined)
    if (unknown !== undefined) {
      throw new ConfigurationError(
        `The run is limited to ${maxCostUsd} US dollars, but ${unknown.model.modelId} has no price, so the limit could not hold. Give createRuntime a price for it in prices.`,
      )
    }
    requireBoundedSearches([definition, ...fallbacks], maxCostUsd)
  }
}

/** Searches that cost money and that nothing bounds could cost any amount within one call. */
function requireBoundedSearches(models: readonly FallbackModel[], maxCostUsd: number): void {
  for (const { model, price, maxWebSearches = 0 } of models) {
    if (price === undefined || computeSearchesCost(price, maxWebSearches) !== Infinity) continue
    throw new ConfigurationError(
      `The run is limited to ${maxCostUsd} US dollars, but its provider may search the web any number of times in one call of ${model.modelId}, at ${price.webSearchUsd} dollars each, so the limit could not hold. Bound the searches: max_uses of the web search tool in providerTools of anthropic, max_tool_calls in extraBody of openai, or maxWebSearches of a model of your own.`,
    )
  }
}

/** Names that an application knows a run by. No model is shown them; the ledger records them. */
export interface LabelOptions {
  /** The workflow that the run executes, such as `refund-desk`. */
  readonly workflowName?: string | undefined
  /** The trace that it belongs to. */
  readonly traceId?: string | undefined
  /** Groups several traces, such as those of a conversation. */
  readonly groupId?: string | undefined
  readonly tags?: readonly string[] | undefined
  /** More of it, as JSON. No place for keys. */
  readonly metadata?: RunLabels['metadata'] | undefined
}

/** Which tools the model must, may or must not call: `any` means that it has to call one. */
export type GivenToolChoice = 'auto' | 'any' | 'none' | { readonly type: 'tool'; readonly name: string }

export const someToolChoice: Schema = textOr(
  ['auto', 'any', 'none'],
  valueThat("'auto', 'any' (it has to call a tool), 'none', or { type: 'tool', name: '…' }", (value) => {
    const { type, name } = Object(value) as { readonly type?: unknown; readonly name?: unknown }
    return type === 'tool' && typeof name === 'string' && name !== ''
  }),
)

/** Options of a run that its first event records, over whatever its agents say. */
export interface RecordedOptions extends LabelOptions, RuntimeRules {
  readonly model?: Model | undefined
  readonly modelSettings?: ModelSettings | undefined
  readonly toolChoice?: GivenToolChoice | undefined
  readonly parallelToolCalls?: boolean | undefined
  readonly recording?: RecordingPolicy | undefined
  readonly previousResponseId?: string | undefined
  readonly conversationId?: string | undefined
  readonly idempotencyKey?: string | undefined
  readonly deadline?: Date | number | undefined
  readonly limits?: GivenLimits | undefined
  readonly owner?: string | undefined
  readonly tracing?: boolean | undefined
  readonly traceContent?: boolean | undefined
}

/** The options of a run over those of its runtime: each setting wins alone. */
export function withDefaults(
  options: RecordedOptions,
  { model, modelSettings, recording }: Omit<RunDefaults, 'hooks'>,
): RecordedOptions {
  return {
    ...options,
    model: options.model ?? model,
    recording: { ...recording, ...omitUndefined({ ...options.recording }) },
    modelSettings: mergeSettings(modelSettings, options.modelSettings),
  }
}

/** Returns the options that the first event of a run records. Throws a `ConfigurationError` for those that could not work. */
export function resolveOptions(
  agent: Agent<unknown>,
  options: RecordedOptions,
  { findPrice }: Pick<AgentRegistry, 'findPrice'>,
): RunGiven {
  const { model, modelSettings, toolChoice, parallelToolCalls, recording } = options
  const { idempotencyKey, deadline, limits, owner } = options
  const { workflowName, traceId, groupId, tags, metadata } = options
  const rules = listRules(options)
  if (typeof toolChoice === 'object') requireTool(agent, toolChoice.name)
  return omitUndefined({
    givenModel: model && toGivenModel(model, findPrice),
    modelSettings: toRecordedSettings(modelSettings),
    toolChoice:
      typeof toolChoice === 'string'
        ? { type: toolChoice }
        : toolChoice && { type: 'tool', name: toolChoice.name },
    parallelToolCalls,
    recording: omitIfEmpty(recording),
    providerState: toProviderState(agent, options),
    labels: omitIfEmpty({ workflowName, traceId, groupId, tags, metadata }),
    // A date that no reader of a ledger can write means never, as the last one does.
    deadlineAt: deadline === undefined ? undefined : Math.min(Number(deadline), LAST_MOMENT),
    idempotencyKey,
    givenLimits: idempotencyKey === undefined ? undefined : omitIfEmpty(limits),
    owner,
    rules: rules.length > 0 ? rules : undefined,
    tracing: options.tracing === false ? (false as const) : undefined,
    traceContent: options.traceContent === false ? (false as const) : undefined,
  })
}

/** Where the provider of the run keeps its past. Each model that may be called has to be able to continue there. */
function toProviderState(
  agent: Agent<unknown>,
  { previousResponseId, conversationId, model }: RecordedOptions,
): ProviderState | undefined {
  if (previousResponseId === undefined && conversationId === undefined) return undefined
  const option = conversationId === undefined ? 'previousResponseId' : 'conversationId'
  if (previousResponseId !== undefined && conversationId !== undefined) {
    throw new ConfigurationError(
      'run: it was given a previousResponseId together with a conversationId, and a provider continues from one of the two. Give one.',
    )
  }
  for (const each of listAgentsInRun(agent)) {
    const stateless = [model ?? each.model, ...each.fallbacks].find(({ keepsState }) => keepsState !== true)
    if (stateless === undefined) continue
    throw new ConfigurationError(
      `run: ${option} was given, but the model ${stateless.modelId} of the agent ${each.name} (${stateless.provider} ${stateless.api}) cannot continue from what a provider keeps, and would answer without it. Use a model that can, such as openai(…), or give the conversation as input.`,
    )
  }
  return omitUndefined({ previousResponseId, conversationId })
}

function toGivenModel(given: Model, findPrice: AgentRegistry['findPrice']): GivenModel {
  const { provider, api, modelId, maxWebSearches = 0 } = given
  const model = { provider, api, modelId }
  return {
    model,
    ...omitUndefined({ price: findPrice(model) }),
    ...(maxWebSearches !== 0 && { maxWebSearches }),
    ...readAdapterSettings(given),
  }
}

/** A source may bring a tool of any name later; without one, a tool that is not there is never called. */
function requireTool({ name: agent, tools, toolSource, toolsInTurn }: Agent<unknown>, name: string): void {
  if ((toolSource ?? toolsInTurn) !== undefined || tools.some((tool) => tool.name === name)) return
  const known = tools.map((tool) => tool.name).join(', ') || 'it has none'
  throw new ConfigurationError(
    `The toolChoice of a run names the tool ${name}, which the agent ${agent} does not have (${known}). Name one of its tools.`,
  )
}

/** The order of a run with an idempotency key: a retry has to repeat it. */
export interface KeyedOrder {
  readonly agent: string
  /** `undefined` if the run has an `onInput`, which may have changed it. */
  readonly message?: UserMessage | undefined
  /** The messages before the run; `undefined` if they come from its session or another run. */
  readonly history?: readonly Message[] | undefined
  readonly sessionId?: string | undefined
  /** Its session's subject, if it names none. */
  readonly subject?: string | undefined
  readonly owner?: string | undefined
  readonly givenLimits?: Limits | undefined
}

/** Throws for two orders of one idempotency key that differ: one of the two is a mistake. */
export function requireSameOrder(runId: RunId, before: KeyedOrder, order: KeyedOrder): void {
  const differs = findDifference(before, order)
  if (differs === undefined) return
  throw new ConfigurationError(
    `The idempotencyKey of this run was used before, for run ${runId} with ${differs}. Nothing was started. Use a new key for a new run; for a retry, give the same agent, input, session, subject, owner and limits.`,
    { code: 'key_used' },
  )
}

function findDifference(before: KeyedOrder, order: KeyedOrder): string | undefined {
  if (before.agent !== order.agent) return 'another agent'
  const messages = [before.message, order.message]
  if (messages.every((message) => message !== undefined) && !isSameJson(messages, messages.toReversed()))
    return 'another input'
  const histories = [before.history, order.history]
  if (histories.every((history) => history !== undefined) && !isSameJson(histories, histories.toReversed()))
    return 'another input'
  if (before.sessionId !== order.sessionId) return 'another session'
  if (order.subject !== undefined && before.subject !== order.subject) return 'another subject'
  if (before.owner !== order.owner) return 'another owner'
  return isSameJson(before.givenLimits ?? {}, order.givenLimits ?? {}) ? undefined : 'other limits'
}

/** Refuses a run that is on record under the key with another order. Of removed content only what is left is compared. */
export async function requireSameRun(ledger: Ledger, runId: RunId, order: KeyedOrder): Promise<void> {
  let before: KeyedOrder | undefined
  // Before the input come the start, the past, and its edits.
  for await (const event of ledger.read(runId, { toSeq: 4 })) {
    if (event.type === 'run_started') {
      const { agent, sessionId, subject, owner, parent } = event
      // A redaction does not keep them.
      const { givenLimits } = event.removed ? order : event
      const history = parent === undefined ? [] : undefined
      before = { message: order.message, history, agent, sessionId, subject, owner, givenLimits }
    } else if (before && event.type === 'history_carried') {
      const history = event.removed || before.history === undefined ? undefined : event.messages
      before = { ...before, history }
    } else if (before && event.type === 'input_received') {
      if (!event.removed) before = { ...before, message: event.message }
      break
    }
  }
  if (before) requireSameOrder(runId, before, order)
}

/** A user's message from what a caller gives. Throws a `ConfigurationError` for what no model could be shown. */
export function toUserMessage(input: string | readonly UserPart[]): UserMessage {
  const parts = typeof input === 'string' ? [{ type: 'text' as const, text: input }] : input
  const given: UserMessage = { role: 'user', parts }
  // The copy is checked, not the original, which may return something else at each read.
  const message = isJson(given) ? deepFreeze(given) : given
  const isMissing: boolean = input === undefined || input === null
  if (isMissing || input === '' || (Array.isArray(input) && input.length === 0)) {
    throw new ConfigurationError(
      'A run needs input: a text, or message parts; providers refuse an empty message.',
    )
  }
  const fault = userMessage(message)
  if (fault === undefined && isJson(message)) return deepFreeze(correctMessage(message))
  const what = fault ? formatFault(fault) : 'JSON cannot carry it'
  throw new ConfigurationError(`The input of a run is wrong: ${what}. Give a text, or message parts.`)
}

/** A message that holds one text, in short. */
export interface TextMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

/** A message of a conversation, as results give them in `messages`, or in short. */
export type InputMessage = Message | TextMessage

/** The input of a run: a text, the parts of a message, or a conversation whose last message is the user's. */
export type RunInput = string | readonly UserPart[] | readonly InputMessage[]

/** The message that a run answers, and what the caller says was said before it. */
export interface GivenInput {
  readonly message: UserMessage
  readonly before: readonly Message[]
}

/** The model of a reply that a caller wrote in short: no model is known to have written it. */
const unnamedModel: ModelRef = { provider: 'given', api: 'given', modelId: 'given' }

/** Returns a frozen copy of what a caller gives. Throws a `ConfigurationError` for what no model could be shown. */
export function parseInput(input: RunInput): GivenInput {
  if (!isConversation(input)) return { message: toUserMessage(input), before: [] }
  const messages = input.map((given, index) => requireMessage(given, index))
  const fault = findPairingFault(messages)
  if (fault !== undefined) {
    throw createInputError(
      `${fault}. Keep each call together with its result, in the order of the calls, and give no result without its call`,
    )
  }
  const last = messages.at(-1)
  if (last?.role !== 'user') {
    throw createInputError(
      `its last message, at ${messages.length - 1}, has the role ${last?.role}, and a run answers a message of the user. Add one, as in [...result.messages, { role: 'user', content: '…' }]`,
    )
  }
  return { message: toUserMessage(last.parts), before: Object.freeze(messages.slice(0, -1)) }
}

/** Frozen copies of messages, each of which a model could be shown. Throws a `ConfigurationError` for one that could not. */
export function parseMessages(messages: readonly InputMessage[]): readonly Message[] {
  return Object.freeze(messages.map((given, index) => requireMessage(given, index)))
}

/** Decides how new input joins the history of its session. */
export type OnInput = (
  history: readonly Message[],
  input: UserMessage,
) => readonly InputMessage[] | Promise<readonly InputMessage[]>

/** The past and the input of a run as its `onInput` joins them. Rejects with a `ConfigurationError` for what no model could be shown. */
export async function joinInput(
  onInput: OnInput,
  past: Past,
  input: UserMessage,
): Promise<{ readonly past: Past; readonly input: UserMessage }> {
  const { history = [], uncheckedFrom = history.length, ...rest } = past
  let joined: unknown
  try {
    joined = await onInput(history, input)
  } catch (cause) {
    throw new ConfigurationError(
      `onInput of the run failed: ${formatErrorSentence(cause)} Nothing was written.`,
      {
        cause,
      },
    )
  }
  if (!Array.isArray(joined) || !isConversation(joined)) {
    throw new ConfigurationError(
      'onInput of the run returned no list of messages, so nothing was written. Return the messages that the run begins with, the last one of the user, as in [...history, input].',
    )
  }
  const { message, before } = parseInput(joined)
  const known = before.findIndex(
    (each, index) => index >= history.length || !isSameJson(each, history[index]),
  )
  const from = Math.min(uncheckedFrom, known === -1 ? before.length : known)
  const carried = before.length === 0 ? {} : { history: before, uncheckedFrom: from }
  return { past: { ...rest, ...carried }, input: message }
}

/** The past of a run with what its caller says was said after that; no guardrail has passed it. */
export function withGiven(past: Past, before: readonly Message[]): Past {
  if (before.length === 0) return past
  const { history = [], uncheckedFrom = history.length } = past
  return {
    ...past,
    history: freezeMessages(before.reduce(appendMessage, createHistory(history))),
    uncheckedFrom,
  }
}

function isConversation(input: RunInput): input is readonly InputMessage[] {
  return Array.isArray(input) && input.some((item: unknown) => Object.hasOwn(Object(item) as object, 'role'))
}

function requireMessage(given: InputMessage, index: number): Message {
  const full =
    given !== null && typeof given === 'object' && 'content' in given ? toFullMessage(given) : given
  // The copy is checked, not the original, which may return something else at each read.
  const whole = isJson(full) ? deepFreeze(full) : full
  const fault = messageSchema(whole)
  const isEmpty = fault === undefined && whole.role === 'user' && whole.parts.length === 0
  if (fault === undefined && !isEmpty && isJson(whole)) return deepFreeze(correctMessage(whole))
  const what = fault
    ? formatFault(placeFault(`[${index}]`, fault))
    : `[${index}] is ${isEmpty ? 'empty' : 'not what JSON can carry'}`
  throw createInputError(
    `${what}. A message is { role: 'user', content: 'a text' }, the same with the role assistant, or one of result.messages`,
  )
}

/** An empty text becomes no part, as providers refuse one. */
function toFullMessage({ role, content }: TextMessage): Message {
  const parts = content === '' ? [] : [{ type: 'text' as const, text: content }]
  if (role !== 'assistant') return { role, parts }
  return { role, parts, model: unnamedModel, stopReason: 'end', partial: false }
}

function createInputError(what: string): ConfigurationError {
  return new ConfigurationError(`The input of a run cannot be shown to a model: ${what}.`)
}
