import { ConfigurationError } from '../../vocabulary/errors.ts'
import type { ShownChange } from '../../vocabulary/events/event.ts'
import { sameModel, type ModelRef } from '../../vocabulary/model/content.ts'
import type { ToolChoice, ToolDefinition } from '../../vocabulary/model/tool-definition.ts'
import {
  anyObject,
  anyText,
  fields,
  listOf,
  maybe,
  numberFrom,
  oneOf,
  trueOrFalse,
  valueThat,
} from '../../vocabulary/options/option.ts'
import { requireNoPromise } from '../../vocabulary/options/answer-of.ts'
import { requireOptions } from '../../vocabulary/options/require-options.ts'
import { canonicalJson, isJson, type Json } from '../../vocabulary/values/json.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { requireShown } from '../messages/pairing.ts'
import { shownInstead } from '../messages/shown-messages.ts'
import type { Rules, TurnChange, TurnRequest } from '../state/rules.ts'
import type { RunState } from '../state/state.ts'
import { modelsOf, namesModel, requestIn, settingsOf, type CallOptions } from './model-request.ts'

/** What a turn's call is to be, where not as the run has it. */
export interface PreparedCall {
  readonly model?: ModelRef
  readonly toolChoice?: ToolChoice
  readonly change: ShownChange
}

/** A call that is to be made, before the agent's code has seen it. */
export type OfferedCall = CallOptions & { readonly sourced?: readonly ToolDefinition[] }

/** What the agent's code makes of a call, with the tools of a source where they have changed; `pending` while it is waited for. */
export function preparedCall(state: RunState, rules: Rules, call: OfferedCall): PreparedCall | 'pending' {
  const { model, toolChoice, maxOutputTokens, sourced } = call
  const source: ShownChange = omitUndefined({ sourced })
  if (rules.prepareTurn === undefined) return { change: source }
  const options = { toolChoice, ...omitUndefined({ maxOutputTokens }), change: source }
  const request: TurnRequest = { model, ...requestIn(state, options) }
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
  requireUnchanged(subject, answer, request)
  const otherSettings = isEqual(settingsOf(state, omitUndefined({ modelSettings })), settingsOf(state))
    ? undefined
    : modelSettings
  return {
    ...omitUndefined({
      model: model && sameModel(model, request.model) ? undefined : model,
      toolChoice: isEqual(toolChoice, request.toolChoice) ? undefined : toolChoice,
    }),
    change: omitUndefined({
      instructions: unlessEqual(instructions, request.instructions),
      tools: toolsIn(answer, request, subject),
      shown: messages && shownInstead(state.history, messages),
      modelSettings: otherSettings && omitUndefined({ ...otherSettings }),
      parallelToolCalls: unlessEqual(parallelToolCalls, request.parallelToolCalls),
      maxOutputTokens: unlessEqual(maxOutputTokens, request.maxOutputTokens),
    }),
  }
}

/** Refuses another schema of the answer, and another past at the provider. */
function requireUnchanged(subject: string, answer: TurnChange, request: TurnRequest): void {
  const { outputSchema = request.outputSchema, providerState = request.providerState } = answer
  if (!isEqual(outputSchema, request.outputSchema)) {
    throw new ConfigurationError(
      `${subject} changes outputSchema, but the runtime reads the answer by the output of the agent. Leave outputSchema out; for another form of answer, use an agent with that output.`,
    )
  }
  if (isEqual(providerState, request.providerState)) return
  throw new ConfigurationError(
    `${subject} changes providerState, which follows from the options of the run. Leave it out; to continue another conversation, start another run.`,
  )
}

/** The names of the tools that the turn offers; `undefined` for all of them. A turn offers fewer, and no other ones. */
function toolsIn(
  { tools }: TurnChange,
  request: TurnRequest,
  subject: string,
): readonly string[] | undefined {
  if (tools === undefined) return undefined
  const names = tools.map((tool) => {
    if (typeof tool === 'string') return tool
    if (request.tools.some((offered) => isEqual(offered, shownOf(tool)))) return tool.name
    throw new ConfigurationError(
      `${subject} offers the tool ${tool.name}, which the request does not have, or has in another form, so a call of it could not be checked. Choose among the tools of the request; add others to the agent's tools or toolSource.`,
    )
  })
  return isEqual(
    names,
    request.tools.map(({ name }) => name),
  )
    ? undefined
    : names
}

/** A model that the agent's code does not name could be recorded, and never called. */
function requireOwnModel({ agent, definition }: RunState, model: ModelRef | undefined): void {
  if (model === undefined || namesModel(definition, model)) return
  const names = modelsOf(definition)
    .map(({ provider, api, modelId }) => `${provider} ${api} ${modelId}`)
    .join(', ')
  throw new ConfigurationError(
    `prepareTurn of the agent ${agent} names the model ${model.provider} ${model.api} ${model.modelId}, which the agent does not have (${names}). Add it to the agent's fallbacks, then continue the run with resume.`,
  )
}

/** What a model sees of a tool. */
function shownOf({ name, description, inputSchema }: ToolDefinition): ToolDefinition {
  return { name, description, inputSchema }
}

function unlessEqual<Value extends Json>(value: Value | undefined, other: unknown): Value | undefined {
  return value === other ? undefined : value
}

function isEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true
  return isJson(one) && isJson(other) && canonicalJson(one) === canonicalJson(other)
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
