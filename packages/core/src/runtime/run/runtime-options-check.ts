import { ConfigurationError } from '../../values/errors.ts'
import {
  anyFunction,
  anyObject,
  anyText,
  fields,
  filledText,
  functionOr,
  listOf,
  maybe,
  numberFrom,
  oneOf,
  type OptionCheck,
  plainFunction,
  recordOf,
  requireOptions,
  trueOrFalse,
  valueThat,
} from '../../values/option.ts'
import { forkWrites } from '../../events/event.ts'
import type { ForkEdit } from '../fork/fork-edit.ts'
import type { ForkOptions } from '../fork/fork.ts'
import { someSettings } from '../../events/model-settings-check.ts'
import { modelPrice } from '../agent/price-check.ts'
import { calledModel, definedAgent, someLimits, someRecording } from '../agent/part-check.ts'
import { someHooks } from '../agent/hooks.ts'
import { someRules } from '../agent/runtime-rules.ts'
import { someMetadata, someTags, someToolChoice } from '../definition/given-labels.ts'
import { someSignal } from './cancel-signal.ts'
import type {
  InContext,
  ResumeOptions,
  RunOptions,
  RuntimeOptions,
  SendOptions,
  SessionRunOptions,
} from './runtime.ts'
import type { PastEdits, PastOptions } from '../session/session-past.ts'

const anyValue: OptionCheck = () => undefined

/** What has these functions, such as a ledger. */
export function having(expected: string, ...names: readonly string[]): OptionCheck {
  return valueThat(expected, (value) => {
    const parts = Object(value) as { readonly [name: string]: unknown }
    return names.every((name) => typeof parts[name] === 'function')
  })
}

/** A store that runs can be written to and read from. */
export const someLedger: OptionCheck = having(
  'a ledger, such as memoryLedger() or sqliteLedger(path)',
  ...['append', 'read', 'acquire'],
)
const clock = having('a clock with now() and schedule(delayMs, callback)', 'now', 'schedule')

/** What models cost. */
export const somePrices: OptionCheck = functionOr(recordOf(modelPrice))

const runtimeOptions = fields<RuntimeOptions>({
  ledger: someLedger,
  agents: maybe(listOf(definedAgent)),
  prices: maybe(somePrices),
  models: maybe(listOf(calledModel)),
  model: maybe(calledModel),
  modelSettings: maybe(someSettings),
  limits: maybe(someLimits),
  recording: maybe(someRecording),
  hooks: maybe(someHooks),
  contextOf: maybe(anyFunction),
  ...someRules,
  onDrift: maybe(oneOf(['continue', 'refuse'])),
  host: maybe(
    fields<NonNullable<RuntimeOptions['host']>>({
      clock: maybe(clock),
      random: maybe(plainFunction),
      report: maybe(anyFunction),
      process: maybe(anyObject),
    }),
  ),
})

/** Refuses what no runtime could be made of. */
export function requireRuntimeOptions(options: RuntimeOptions): void {
  requireOptions('createRuntime', runtimeOptions, options)
}

const edit = fields<PastEdits>({
  of: filledText,
  edits: listOf(anyObject),
  by: maybe(filledText),
  reason: maybe(anyText),
})

const from = fields<NonNullable<PastOptions['from']>>({ runId: filledText, atSeq: maybe(numberFrom(0)) })

/** The latest moment that a `Date` can say. */
const MAX_MOMENT = 8.64e15

const moment = valueThat(
  'a Date, or a whole number of milliseconds since 1970 UTC',
  (value) =>
    (value instanceof Date || typeof value === 'number') &&
    Number.isSafeInteger(Number(value)) &&
    Number(value) >= 0 &&
    Number(value) <= MAX_MOMENT,
)

const ownOptions = {
  from: maybe(from),
  edit: maybe(edit),
  limits: maybe(someLimits),
  model: maybe(calledModel),
  modelSettings: maybe(someSettings),
  toolChoice: maybe(someToolChoice),
  parallelToolCalls: maybe(trueOrFalse),
  recording: maybe(someRecording),
  signal: maybe(someSignal),
  hooks: maybe(someHooks),
  idempotencyKey: maybe(filledText),
  deadline: maybe(moment),
  workflowName: maybe(filledText),
  traceId: maybe(filledText),
  groupId: maybe(filledText),
  tags: maybe(someTags),
  metadata: maybe(someMetadata),
  subject: maybe(filledText),
  owner: maybe(filledText),
  inputId: maybe(filledText),
  mayFollow: maybe(anyFunction),
  context: maybe(anyValue),
} as const

const runNames = {
  ctx: 'context',
  deps: 'context',
  maxTurns: 'limits.maxTurns',
  maxSteps: 'limits.maxTurns',
  userId: 'subject',
  temperature: 'modelSettings.temperature',
  topP: 'modelSettings.topP',
  seed: 'modelSettings.seed',
  stop: 'modelSettings.stop',
  providerOptions: 'modelSettings.providerOptions',
  runName: 'workflowName',
  runId: 'idempotencyKey',
  run_id: 'idempotencyKey',
  configurable: 'context',
  recursionLimit: 'limits.maxTurns',
}

const runOptions = fields<InContext<RunOptions>>(
  {
    ...ownOptions,
    sessionId: maybe(filledText),
    whenBusy: maybe(oneOf(['conflict', 'wait'])),
    previousResponseId: maybe(filledText),
    conversationId: maybe(filledText),
  },
  { ...runNames, threadId: 'sessionId', thread: 'sessionId' },
)

const sessionRunOptions = fields<InContext<SessionRunOptions>>(
  { ...ownOptions, whenBusy: maybe(oneOf(['conflict', 'wait', 'join'])) },
  runNames,
)

/** Refuses options of which no run could be started. */
export function requireRunOptions(options: RunOptions): void {
  requireOptions('run', runOptions, options)
  const { sessionId, from: past, previousResponseId, conversationId } = options
  if ((sessionId ?? past) === undefined || (previousResponseId ?? conversationId) === undefined) return
  const [mine, theirs] = [
    sessionId === undefined ? 'from' : 'sessionId',
    conversationId === undefined ? 'previousResponseId' : 'conversationId',
  ]
  throw new ConfigurationError(
    `run: it was given ${mine} together with ${theirs}, so the model would see the past twice: from the ledger, and from the provider. Give one of the two.`,
  )
}

/** The same, for a run of a session. */
export function requireSessionRunOptions(options: SessionRunOptions): void {
  requireOptions('session(…).run', sessionRunOptions, options)
}

const forkEdit = fields<ForkEdit>({
  input: maybe(anyValue),
  history: maybe(listOf(anyObject)),
  results: maybe(
    listOf(
      fields<NonNullable<ForkEdit['results']>[number]>({
        toolCallId: filledText,
        content: anyValue,
        outcome: maybe(oneOf(['success', 'failed'])),
      }),
    ),
  ),
  approvals: maybe(
    listOf(
      fields<{
        toolCallId: string
        by: string
        approved: boolean
        input?: object | undefined
        reason?: string | undefined
      }>({
        toolCallId: filledText,
        by: filledText,
        approved: trueOrFalse,
        input: maybe(anyObject),
        reason: maybe(anyText),
      }),
    ),
  ),
  by: maybe(anyText),
  reason: maybe(anyText),
})

const forkOptions = fields<InContext<ForkOptions>>(
  {
    atSeq: numberFrom(0, { whole: true }),
    edit: maybe(forkEdit),
    agent: maybe(definedAgent),
    sessionId: maybe(filledText),
    writes: maybe(oneOf(forkWrites)),
    owner: maybe(filledText),
    mayFollow: maybe(anyFunction),
    context: maybe(anyValue),
  },
  { input: 'edit.input', results: 'edit.results' },
)

/** Refuses options of which no fork could be made. */
export function requireForkOptions(options: ForkOptions): void {
  requireOptions('fork', forkOptions, options)
}

const resumeOptions = fields<ResumeOptions>({
  takeOver: maybe(trueOrFalse),
  agent: maybe(definedAgent),
  context: maybe(anyValue),
  model: maybe(calledModel),
  hooks: maybe(someHooks),
})

/** Refuses options of which no run could be taken up. */
export function requireResumeOptions(options: unknown): void {
  requireOptions('resume', resumeOptions, options)
}

const settleOptions = fields<
  Omit<ResumeOptions, 'takeOver'> & { readonly by?: string | undefined; readonly reason?: string | undefined }
>({
  agent: maybe(definedAgent),
  context: maybe(anyValue),
  model: maybe(calledModel),
  hooks: maybe(someHooks),
  by: maybe(filledText),
  reason: maybe(anyText),
})

const failure = fields<{ readonly failed: string }>({ failed: anyText })

const parts = listOf(anyObject)
const aText = valueThat('a text, a list of parts, or { failed: text }', (value) => typeof value === 'string')

const settledResult: OptionCheck = (value, path) => {
  if (Array.isArray(value)) return parts(value, path)
  const isFailure = typeof value === 'object' && value !== null && 'failed' in value
  return isFailure ? failure(value, path) : aText(value, path)
}

/** Refuses what names no run or call, and what is no result of one. */
export function requireSettling(
  runId: unknown,
  toolCallId: unknown,
  result: unknown,
  options: unknown,
): void {
  requireOptions('settle', anyText, runId, 'the run id')
  requireOptions('settle', anyText, toolCallId, 'the tool call id')
  requireOptions('settle', settledResult, result, 'the result')
  requireOptions('settle', settleOptions, options)
}

const sendOptions = fields<InContext<SendOptions>>({ key: maybe(filledText), context: maybe(anyValue) })

/** Refuses options with which no command could be sent. */
export function requireSendOptions(options: InContext<SendOptions>): void {
  requireOptions('send', sendOptions, options)
}
