import { LAST_MOMENT } from '../../events/event-parts.ts'
import { ConfigurationError } from '../../values/errors.ts'
import type { GivenModel, RecordingPolicy, RunGiven } from '../../events/agent-definition.ts'
import type { Message, ProviderState, UserMessage } from '../../events/content.ts'
import { mergedSettings, type ModelSettings } from '../../events/model-request.ts'
import { isSameJson, omitUndefined } from '../../values/json.ts'
import type { RunId } from '../../values/ids.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Model } from '../../models/model.ts'
import type { Agent } from '../agent/agent.ts'
import { recordedSettings } from '../../events/model-settings-check.ts'
import {
  recordedChoice,
  recordedLabels,
  type GivenToolChoice,
  type LabelOptions,
} from '../definition/given-labels.ts'
import { adapterSettings } from '../definition/agent-policy-of.ts'
import { recordedPolicy } from '../agent/part-check.ts'
import type { RunDefaults } from '../definition/runtime-parts.ts'
import type { GivenLimits, Limits } from '../../events/limits.ts'
import { agentsInRun, type AgentRegistry } from '../definition/registered-agents.ts'

/** Options of a run that its first event records, over whatever its agents say. */
export interface RecordedOptions extends LabelOptions {
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
    modelSettings: mergedSettings(modelSettings, options.modelSettings),
  }
}

/** What the first event of a run records of its options. Throws a `ConfigurationError` for what could not work. */
export function givenIn(
  agent: Agent<unknown>,
  options: RecordedOptions,
  { priceOf }: Pick<AgentRegistry, 'priceOf'>,
): RunGiven {
  const { model, modelSettings, toolChoice, parallelToolCalls, recording } = options
  const { idempotencyKey, deadline, limits, owner } = options
  if (typeof toolChoice === 'object') requireTool(agent, toolChoice.name)
  return omitUndefined({
    givenModel: model && givenModel(model, priceOf),
    modelSettings: recordedSettings(modelSettings),
    toolChoice: toolChoice && recordedChoice(toolChoice),
    parallelToolCalls,
    recording: recordedPolicy(recording),
    providerState: givenState(agent, options),
    labels: recordedLabels(options),
    // A date that no reader of a ledger can write means never, as the last one does.
    deadlineAt: deadline === undefined ? undefined : Math.min(Number(deadline), LAST_MOMENT),
    idempotencyKey,
    givenLimits: idempotencyKey === undefined ? undefined : givenLimitsOf(limits),
    owner,
  })
}

/** Where the provider of the run keeps its past. Each model that may be called has to be able to continue there. */
function givenState(
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
  for (const each of agentsInRun(agent)) {
    const stateless = [model ?? each.model, ...each.fallbacks].find(({ keepsState }) => keepsState !== true)
    if (stateless === undefined) continue
    throw new ConfigurationError(
      `run: ${option} was given, but the model ${stateless.modelId} of the agent ${each.name} (${stateless.provider} ${stateless.api}) cannot continue from what a provider keeps, and would answer without it. Use a model that can, such as openai(…), or give the conversation as input.`,
    )
  }
  return omitUndefined({ previousResponseId, conversationId })
}

function givenModel(given: Model, priceOf: AgentRegistry['priceOf']): GivenModel {
  const { provider, api, modelId, maxWebSearches = 0 } = given
  const model = { provider, api, modelId }
  return {
    model,
    ...omitUndefined({ price: priceOf(model) }),
    ...(maxWebSearches !== 0 && { maxWebSearches }),
    ...adapterSettings(given),
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

/** The limits that a start gives itself; `undefined` for none. */
function givenLimitsOf(limits: GivenLimits = {}): Limits | undefined {
  const given: Limits = omitUndefined({ ...limits })
  return Object.keys(given).length === 0 ? undefined : given
}

/** What a retry under the same idempotency key has to say again. */
export interface KeyedOrder {
  readonly agent: string
  readonly message: UserMessage
  /** What was said before the run; `undefined` where that is of its session, or another run's. */
  readonly history?: readonly Message[] | undefined
  readonly sessionId?: string | undefined
  /** That of its session, if it names none. */
  readonly subject?: string | undefined
  readonly owner?: string | undefined
  readonly givenLimits?: Limits | undefined
}

/** Throws for two orders of one idempotency key that differ: one of the two is a mistake. */
export function requireSameOrder(runId: RunId, before: KeyedOrder, order: KeyedOrder): void {
  const differs = otherPart(before, order)
  if (differs === undefined) return
  throw new ConfigurationError(
    `The idempotencyKey of this run was used before, for run ${runId} with ${differs}. Nothing was started. Use a new key for a new run; for a retry, give the same agent, input, session, subject, owner and limits.`,
    { code: 'key_used' },
  )
}

function otherPart(before: KeyedOrder, order: KeyedOrder): string | undefined {
  if (before.agent !== order.agent) return 'another agent'
  if (!isSameJson(before.message, order.message)) return 'another input'
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
