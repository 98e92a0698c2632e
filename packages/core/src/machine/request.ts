import type { AgentDefinition, RequestAddition } from '../events/agent-definition.ts'
import {
  mergeSettings,
  type ModelRequest,
  type ModelSettings,
  type ToolChoice,
  type ToolDefinition,
} from '../events/model-request.ts'
import { type Message, type ModelRef, isSameModel, type ToolResult } from '../events/content.ts'
import type { PreparedCall, ShownChange } from '../events/event-parts.ts'
import { toCanonicalJson, getOwn, isJson, type Json, type JsonObject, omitUndefined } from '../values/json.ts'
import { computeDigest } from '../values/digest.ts'
import {
  appendMessage,
  freezeMessages,
  computeHistoryDigest,
  readMessages,
  readShownMessages,
  requireShown,
  toShownMessages,
  withShownDigest,
} from './history.ts'
import { filterOfferedTools, digestSourced } from './tokens.ts'
import type { Call, RunState, StreamingState } from './state.ts'
import { ConfigurationError } from '../values/errors.ts'
import {
  anyObject,
  anyText,
  fields,
  listOf,
  maybe,
  numberFrom,
  oneOf,
  requireNoPromise,
  requireOptions,
  trueOrFalse,
  valueThat,
} from '../values/option.ts'
import type { Rules, TurnChange, TurnRequest } from './rules.ts'
import { openTurnCalls, toTextContent } from './calls.ts'

/** The additions of a single call to the definition and the history. */
interface CallOptions {
  readonly model: ModelRef
  readonly toolChoice: ToolChoice
  readonly maxOutputTokens?: number
  readonly change?: ShownChange
}

/** The model settings that apply in this state, in a turn that changes some of them. */
export function getSettings(
  { definition, modelSettings }: RunState,
  change: ShownChange = {},
): ModelSettings | undefined {
  return mergeSettings(mergeSettings(definition.modelSettings, modelSettings), change.modelSettings)
}

/** The same as a request carries them: how much a reply may hold is a field of its own there, held to what is granted. */
export function pickWritingSettings(state: RunState, change?: ShownChange): ModelSettings | undefined {
  const { maxOutputTokens: _granted, ...settings } = getSettings(state, change) ?? {}
  return Object.keys(settings).length === 0 ? undefined : settings
}

/** Returns whether the model may ask for several tools in one reply. */
export function callsInParallel({ definition, parallelToolCalls }: RunState): boolean {
  return parallelToolCalls ?? definition.parallelToolCalls
}

/** The request of the attempt that is under way. */
export function toModelRequest(state: StreamingState): ModelRequest {
  return buildRequest(state, state.attempt)
}

function buildRequest(state: RunState, call: Omit<CallOptions, 'model'>): ModelRequest {
  const { toolChoice, maxOutputTokens, change = {} } = call
  const { instructions = state.definition.instructions, parallelToolCalls = callsInParallel(state) } = change
  return {
    instructions,
    messages: readShownMessages(state.history, change),
    tools: filterOfferedTools(state, change.tools, change.sourced),
    toolChoice,
    parallelToolCalls,
    ...omitUndefined({ maxOutputTokens, outputSchema: state.definition.output?.schema }),
    ...omitUndefined({
      modelSettings: pickWritingSettings(state, change),
      providerState: state.providerState,
    }),
  }
}

/**
 * Law 7: what names a request. It takes in the model, the definition and the tools of a source by their digests, the run's
 * own settings, the options of the call, and the running digest of the history, so that it costs what the turn adds.
 */
export function computeRequestDigest(state: RunState, options: CallOptions): string {
  const { model, toolChoice, maxOutputTokens, change } = options
  const sourced = digestSourced(state, change?.sourced)
  return computeDigest({
    model,
    definition: state.definition.digest,
    toolChoice,
    history: computeHistoryDigest(state.history),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(state.modelSettings && { modelSettings: state.modelSettings }),
    ...(state.parallelToolCalls !== undefined && { parallelToolCalls: state.parallelToolCalls }),
    ...(change !== undefined && { change: withShownDigest(state.history, change) }),
    ...(sourced !== undefined && { sourced }),
    ...(state.providerState && { providerState: { ...state.providerState } }),
  })
}

/** Fields that a model adapter's options add to its requests, as pinned in the definition. */
export function digestAdditions(
  { policy }: AgentDefinition,
  model: ModelRef,
): readonly RequestAddition[] | undefined {
  return policy?.models?.find((pinned) => isSameModel(pinned.model, model))?.additions
}

/** The models that an agent names: its own, then its fallbacks, in order. */
export function listModels({ model, fallbacks = [] }: AgentDefinition): readonly ModelRef[] {
  return [model, ...fallbacks.map((fallback) => fallback.model)]
}

export function namesModel(definition: AgentDefinition, model: ModelRef): boolean {
  return listModels(definition).some((known) => isSameModel(known, model))
}

/** A call that is to be made, before the agent's code has seen it. */
export type OfferedCall = CallOptions & { readonly sourced?: readonly ToolDefinition[] }

/** Asks the agent's code to prepare a call, with the tools of a source if they have changed; `pending` while it is waited for. */
export function prepareCall(state: RunState, rules: Rules, call: OfferedCall): PreparedCall | 'pending' {
  const { model, toolChoice, maxOutputTokens, sourced } = call
  const source: ShownChange = omitUndefined({ sourced })
  if (rules.prepareTurn === undefined) return { change: source }
  const options = { toolChoice, ...omitUndefined({ maxOutputTokens }), change: source }
  const request: TurnRequest = { model, ...buildRequest(state, options) }
  const answer = rules.prepareTurn(state, request)
  if (answer === 'pending') return answer
  const { change, ...prepared } = answer == null ? { change: {} } : readAnswer(state, request, answer)
  return { ...prepared, change: { ...change, ...source } }
}

function readAnswer(state: RunState, request: TurnRequest, answer: TurnChange): PreparedCall {
  const subject = `prepareTurn of the agent ${state.agent}`
  requireNoPromise(subject, answer)
  requireOptions(subject, anyObject, answer, 'its answer')
  requireOptions(subject, turnChange, answer)
  const { model, toolChoice, instructions, messages } = answer
  const { modelSettings, parallelToolCalls, maxOutputTokens } = answer
  requireOwnModel(state, model)
  requireShown(messages, subject)
  const { outputSchema = request.outputSchema, providerState = request.providerState } = answer
  if (!isEqual(outputSchema, request.outputSchema)) {
    throw new ConfigurationError(
      `${subject} changes outputSchema, but the runtime reads the answer by the output of the agent. Leave outputSchema out; for another form of answer, use an agent with that output.`,
    )
  }
  if (!isEqual(providerState, request.providerState)) {
    throw new ConfigurationError(
      `${subject} changes providerState, which follows from the options of the run. Leave it out; to continue another conversation, start another run.`,
    )
  }
  const otherSettings = isEqual(getSettings(state, omitUndefined({ modelSettings })), getSettings(state))
    ? undefined
    : modelSettings
  return {
    ...omitUndefined({
      model: model && isSameModel(model, request.model) ? undefined : model,
      toolChoice: isEqual(toolChoice, request.toolChoice) ? undefined : toolChoice,
    }),
    change: omitUndefined({
      instructions: omitIfEqual(instructions, request.instructions),
      tools: readToolNames(answer, request, subject),
      shown: messages && toShownMessages(state.history, messages),
      modelSettings: otherSettings && omitUndefined({ ...otherSettings }),
      parallelToolCalls: omitIfEqual(parallelToolCalls, request.parallelToolCalls),
      maxOutputTokens: omitIfEqual(maxOutputTokens, request.maxOutputTokens),
    }),
  }
}

/** The names of the tools that the turn offers; `undefined` for all of them. A turn offers fewer, and no other ones. */
function readToolNames(
  { tools }: TurnChange,
  request: TurnRequest,
  subject: string,
): readonly string[] | undefined {
  if (tools === undefined) return undefined
  const names = tools.map((tool) => {
    if (typeof tool === 'string') return tool
    const { name, description, inputSchema } = tool
    if (request.tools.some((offered) => isEqual(offered, { name, description, inputSchema }))) return name
    throw new ConfigurationError(
      `${subject} offers the tool ${name}, which the request does not have, or has in another form, so a call of it could not be checked. Choose among the tools of the request; add others to the agent's tools or toolSource.`,
    )
  })
  const offered = request.tools.map(({ name }) => name)
  return isEqual(names, offered) ? undefined : names
}

/** A model that the agent's code does not name could be recorded, and never called. */
function requireOwnModel({ agent, definition }: RunState, model: ModelRef | undefined): void {
  if (model === undefined || namesModel(definition, model)) return
  const names = listModels(definition)
    .map(({ provider, api, modelId }) => `${provider} ${api} ${modelId}`)
    .join(', ')
  throw new ConfigurationError(
    `prepareTurn of the agent ${agent} names the model ${model.provider} ${model.api} ${model.modelId}, which the agent does not have (${names}). Add it to the agent's fallbacks, then continue the run with resume.`,
  )
}

function omitIfEqual<Value extends Json>(value: Value | undefined, other: unknown): Value | undefined {
  return value === other ? undefined : value
}

function isEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true
  return isJson(one) && isJson(other) && toCanonicalJson(one) === toCanonicalJson(other)
}

const aTool = valueThat(
  'the name of a tool, or a tool of the request',
  (value) => typeof value === 'string' || typeof (Object(value) as Partial<ToolDefinition>).name === 'string',
)
const aChoice = fields<{ readonly type: string; readonly name?: string | undefined }>({
  type: oneOf(['auto', 'any', 'none', 'tool']),
  name: maybe(anyText),
})

/** The runtime has checked the messages and the settings, by schemas that the machine does not load. */
const turnChange = fields<TurnChange>({
  instructions: maybe(anyText),
  tools: maybe(listOf(aTool)),
  toolChoice: maybe(aChoice),
  model: maybe(anyObject),
  messages: maybe(listOf(anyObject)),
  modelSettings: maybe(anyObject),
  parallelToolCalls: maybe(trueOrFalse),
  maxOutputTokens: maybe(numberFrom(1, { whole: true })),
  outputSchema: maybe(anyObject),
  providerState: maybe(anyObject),
})

/** Says what an approver changed in the input of a call, for the model that asked for another one. */
export function describeChangedInput(by: string, asked: JsonObject, ran: JsonObject): string {
  const keys = [...new Set([...Object.keys(asked), ...Object.keys(ran)])].toSorted()
  const changes = keys.flatMap((key) => {
    const [before, after] = [getOwn(asked, key), getOwn(ran, key)]
    if (after === undefined) return [`${JSON.stringify(key)} was left out`]
    const text = toCanonicalJson(after)
    if (before !== undefined && toCanonicalJson(before) === text) return []
    return [`${JSON.stringify(key)} was ${text}`]
  })
  return (
    `This call did not run with the input that you asked for: ${by} changed it before it ran. ` +
    `What differed: ${changes.join(', ')}. The result is that of the changed call.`
  )
}

/**
 * The result of a call as the model reads it: preceded by what was changed in its input, if it ran with another one.
 */
export function toShownResult({ result, changeNote, attempts }: Call): ToolResult | undefined {
  if (result === undefined || changeNote === undefined || attempts === 0) return result
  return { ...result, content: [...toTextContent(result.outcome, changeNote), ...result.content] }
}

/**
 * The messages that a model could be shown in any state: the history, and after a message whose calls are
 * still open their results so far, with `interrupted` or `skipped` standing in for those that are missing. So any
 * prefix of any ledger gives messages that every provider accepts. An allow-list: nothing but messages gets in.
 */
export function toTranscript(state: RunState): readonly Message[] {
  const messages = readMessages(state.history)
  const results = listOpenResults(state)
  return results ? [...messages, results] : messages
}

/** The beginning of another run that follows this state: the transcript, with its running digests. */
export function carryTranscript(state: RunState): readonly Message[] {
  const results = listOpenResults(state)
  return freezeMessages(results ? appendMessage(state.history, results) : state.history)
}

function listOpenResults(state: RunState): Message | undefined {
  if (state.phase !== 'collecting' && state.phase !== 'executing') return undefined
  const calls = openTurnCalls(state)
  if (calls.length === 0) return undefined
  return { role: 'tool', results: calls.map((call) => toShownResult(call) ?? toPlaceholderResult(call)) }
}

function toPlaceholderResult({ toolCallId, name, attempts }: Call): ToolResult {
  const outcome = attempts > 0 ? 'interrupted' : 'skipped'
  const text = attempts > 0 ? undefined : 'This call was not run.'
  return { toolCallId, name, outcome, content: toTextContent(outcome, text) }
}
