import type { Model } from '../../models/model.ts'
import type { Tool } from '../../tools/tool.ts'
import {
  forEveryLimit,
  type GivenLimits,
  type GivenRetryPolicy,
  leastResultChars,
  type LimitName,
  limitNames,
  onLimits,
  retry as wholeRetry,
} from '../../events/limits.ts'
import {
  fields,
  filledText,
  longTime,
  maybe,
  numberFrom,
  oneOf,
  recordOf,
  trueOrFalse,
  valueThat,
  type OptionCheck,
  type OptionFault,
} from '../../values/option.ts'
import type { RecordingPolicy } from '../../events/agent-definition.ts'
import { omitUndefined } from '../../values/json.ts'
import { faultOf, jsonObject } from '../../values/schema.ts'
import { recoveries, toolEffects } from '../../events/model-request.ts'

/**
 * Whether `defineAgent` made it. Its tools and its definition are not looked at: agents may name each other in a circle.
 */
export function isDefinedAgent(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'definition' in value && 'handoffs' in value
}

/** What `defineAgent` made. */
export const definedAgent: OptionCheck = valueThat('an agent made with defineAgent', isDefinedAgent)

/** A model that can be called, and named in a ledger. */
export const calledModel: OptionCheck = (value, path) => {
  const what = modelFault(value)
  return what === undefined ? undefined : { path, what }
}

const aModel = "such as anthropic('…') of @tallystick/providers/anthropic"

function modelFault(value: unknown): string | undefined {
  if (typeof value === 'string') return `is a text; give a model, ${aModel}`
  const { stream, provider, api, modelId, maxWebSearches, doStream } = Object(value) as Partial<Model> & {
    readonly doStream?: unknown
  }
  if (typeof stream === 'function') {
    if (![provider, api, modelId].every((name) => typeof name === 'string'))
      return 'does not say its provider, api and modelId, so no ledger could say who answered'
    if (maxWebSearches === undefined || maxWebSearches === 'unbounded') return undefined
    const isCount = Number.isSafeInteger(maxWebSearches) && maxWebSearches >= 0
    return isCount ? undefined : "has a maxWebSearches that is neither a whole number from 0 nor 'unbounded'"
  }
  if (typeof doStream === 'function') {
    return 'is a model of the AI SDK; wrap it with fromAiSdk(…) of @tallystick/providers/ai-sdk'
  }
  if (typeof value === 'function')
    return `is a function; call it, and give the model that it makes, ${aModel}`
  return `is no model; give one, ${aModel}`
}

/** A tool that can be offered, run and taken up again. */
export const offeredTool: OptionCheck = (value, path) => {
  const { run, check, name, execute } = Object(value) as Partial<Tool> & { readonly execute?: unknown }
  if (typeof run !== 'function' || typeof check !== 'function') {
    const foreign = typeof execute === 'function' ? ', with effect, input and execute' : ''
    return { path, what: `is no tool; make it with defineTool of @tallystick/tools${foreign}` }
  }
  const what = toolFault(value as Tool)
  if (what === undefined) return undefined
  return { path: typeof name === 'string' && name !== '' ? `${path} (${name})` : path, what }
}

function toolFault(tool: Tool): string | undefined {
  const { name, description, inputSchema, effect, recovery } = tool
  if (typeof name !== 'string' || name === '') return 'has no name, so no model could ask for it'
  if (typeof description !== 'string') return "has no description; say when to use it, or give ''"
  if (faultOf(jsonObject, inputSchema)) return 'has no input schema; give a JSON Schema of type object'
  const fault: OptionFault | undefined =
    oneOf(toolEffects)(effect, 'its effect') ?? oneOf(recoveries)(recovery, 'its recovery')
  if (fault) return `cannot be used: ${fault.path} ${fault.what}`
  const unusable = limitFault(tool)
  if (unusable) return unusable
  return recovery === 'reconcile' && typeof tool.reconcile !== 'function'
    ? 'says recovery reconcile, but has no function for it'
    : undefined
}

function limitFault(tool: Tool): string | undefined {
  if (tool.retry !== undefined && faultOf(wholeRetry, tool.retry))
    return 'has a retry policy that is not whole: give maxAttempts, baseMs, capMs and maxRetryAfterMs'
  const { serial, maxConcurrency, maxResultChars, repeats } = tool
  const limited =
    maybe(numberFrom(leastResultChars, { whole: true }))(maxResultChars, 'its maxResultChars') ??
    maybe(filledText)(serial, 'its serial') ??
    maybe(numberFrom(1, { whole: true }))(maxConcurrency, 'its maxConcurrency') ??
    maybe(oneOf(['allowed']))(repeats, 'its repeats')
  return limited && `cannot be used: ${limited.path} ${limited.what}`
}

const count = numberFrom(0, { whole: true })

/** What each limit that can be met may be: turns and calls are whole, dollars and milliseconds may be fractions. */
export const limitChecks: { readonly [L in LimitName]: OptionCheck } = {
  ...forEveryLimit(count),
  maxCostUsd: numberFrom(0),
  maxDurationMs: numberFrom(0),
}

/** Maxima of a run. */
export const someLimits: OptionCheck = fields<GivenLimits>(
  {
    ...forEveryLimit(maybe(count)),
    maxCostUsd: maybe(limitChecks.maxCostUsd),
    maxDurationMs: maybe(limitChecks.maxDurationMs),
    maxCallsByTool: maybe(recordOf(count)),
    maxConcurrency: maybe(numberFrom(1, { whole: true })),
    maxApprovalMs: maybe(longTime),
    graceMs: maybe(numberFrom(0)),
    onLimit: maybe(oneOf(onLimits)),
  },
  {
    maxSteps: 'maxTurns',
    budget: 'maxCostUsd',
    maxBudgetUsd: 'maxCostUsd',
    timeoutMs: 'maxDurationMs',
    maxTokens: 'maxTotalTokens',
    maxInputTokens: 'maxTotalInputTokens',
    maxOutputTokens: 'maxTotalOutputTokens',
  },
)

/** A limit that can be raised. */
export const limitName: OptionCheck = oneOf(limitNames)

/** Waits and attempts of a model call: a retry without end would look like a run that hangs. */
export const retryPolicy: OptionCheck = fields<GivenRetryPolicy>(
  {
    maxAttempts: maybe(numberFrom(1, { whole: true })),
    baseMs: maybe(numberFrom(0)),
    capMs: maybe(numberFrom(0)),
    maxRetryAfterMs: maybe(numberFrom(0)),
    maxTotalMs: maybe(numberFrom(0)),
  },
  { maxRetries: 'maxAttempts' },
)

/** Which events a run records. */
export const someRecording: OptionCheck = fields<RecordingPolicy>({
  toolInputDeltas: maybe(trueOrFalse),
  toolProgress: maybe(trueOrFalse),
  reasoning: maybe(trueOrFalse),
  rawUsage: maybe(trueOrFalse),
  toolErrors: maybe(trueOrFalse),
  content: maybe(oneOf(['full', 'digests'])),
})

/** A policy as it is recorded; `undefined` where it says nothing. */
export function recordedPolicy(policy: RecordingPolicy | undefined): RecordingPolicy | undefined {
  const given: RecordingPolicy = omitUndefined({ ...policy })
  return Object.keys(given).length === 0 ? undefined : given
}
