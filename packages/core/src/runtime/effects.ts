import type { Agent } from '../agent/agent.ts'
import { findCheckedTool, findTool, listAllTools } from '../agent/source-tools.ts'
import { readAnswers } from '../events/answer-schema.ts'
import { type Message, type ModelRef, isSameModel, joinText } from '../events/content.ts'
import type { ToolSpending } from '../events/event.ts'
import { defaultLimits } from '../events/limits.ts'
import { readResultName } from '../events/model-request.ts'
import type { Signal } from '../events/signals.ts'
import { takeLargerUsage, pickTokenCounts, type Usage } from '../events/usage.ts'
import { findCall, toTextContent } from '../machine/calls.ts'
import { buildSummaryRequest } from '../machine/compaction.ts'
import { readMessages } from '../machine/history.ts'
import { computeLeftForCall } from '../machine/budget.ts'
import { toModelRequest } from '../machine/request.ts'
import { type Effect, requiredEffects } from '../machine/required-effects.ts'
import type { BackgroundCall, RunState } from '../machine/state.ts'
import { startModelCall } from '../models/model-call.ts'
import { OutputStage } from '../models/output.ts'
import { checkCalls } from '../tools/check-calls.ts'
import { guardInput, guardOutput, guardResults, selectGuardrails } from '../tools/guardrails.ts'
import { isLonger, reconcileCall, shortenResult, startTool } from '../tools/tool-call.ts'
import { extractJson } from '../tools/tool-schema.ts'
import type { CallContext, ToolRun } from '../tools/tool.ts'
import { answerInTime, CHECK_MS, late, createStoppableClock } from '../values/answer-in-time.ts'
import { ConfigurationError } from '../values/errors.ts'
import type { Clock } from '../values/host.ts'
import { deepFreeze, omitUndefined } from '../values/json.ts'
import { formatError } from '../values/text.ts'
import { driveChild, startChild } from './children.ts'
import type { AskedCall } from './fork.ts'
import type { RunContext } from './run-context.ts'

/**
 * Keeps the effects in flight that the state requires, and no others. Starts each effect once: a key that was started is
 * never started again, whatever became of it.
 */
export class Effects {
  readonly #run: RunContext
  readonly #started = new Set<string>()
  readonly #inFlight = new Map<string, InFlight>()

  constructor(run: RunContext) {
    this.#run = run
  }

  /** True while anything that the state requires is in flight. */
  isBusy(state: RunState): boolean {
    return requiredEffects(state).some(({ key }) => this.#inFlight.has(key))
  }

  /** Law 8: called only when every event of the state is in the ledger. With `draining`, nothing new is started. */
  follow(state: RunState, { draining }: { readonly draining: boolean }): void {
    const wanted = requiredEffects(state)
    const keys = new Set(wanted.map(({ key }) => key))
    for (const key of [...this.#inFlight.keys()]) if (!keys.has(key)) this.#stop(key)
    for (const effect of wanted) {
      if (!draining) this.#startOnce(effect)
      if (effect.kind === 'tool' && effect.cancelReason !== undefined) {
        this.#inFlight.get(effect.key)?.begun.cancel?.(effect.cancelReason)
      }
    }
  }

  /**
   * Starts the check of a reply's calls by the tools themselves, which has no side effects, so that it may begin before the
   * reply is recorded. Returns whether there is one: guardrails and policies are the application's code, and wait.
   */
  startPureCheck(state: RunState): boolean {
    if (state.phase !== 'collecting' || this.#run.results) return false
    const { approval, guardrails } = this.#run.findAgent(state.agent)
    if (approval || selectGuardrails(guardrails, 'tool_input').length > 0) return false
    const [effect, ...others] = requiredEffects(state)
    if (effect?.kind !== 'check_calls' || others.length > 0) return false
    this.#startOnce(effect)
    return true
  }

  #startOnce(effect: Effect): void {
    const { key, kind } = effect
    if (this.#started.has(key)) return
    this.#started.add(key)
    const inFlight: InFlight = { effect, begun: {}, isStopped: false }
    this.#inFlight.set(key, inFlight)
    const begin = starters[kind] as Starter<Effect['kind']>
    inFlight.begun = begin(effect, this.#run, (signal) => {
      if (inFlight.isStopped) return
      // The caller may go on changing the values that it passed: the record holds a copy.
      this.#run.post(deepFreeze(withShortResult(signal, effect, this.#run)))
    })
  }

  #stop(key: string): void {
    const stopped = this.#inFlight.get(key)
    if (stopped === undefined) return
    this.#inFlight.delete(key)
    stopped.isStopped = true
    try {
      stopped.begun.stop?.()
    } catch (error) {
      // A faulty adapter or tool must not stop the run that abandons it.
      const { state, kind } = stopped.effect
      this.#run.host.report(
        error,
        `What was in flight for run ${state.runId} (${kind}) threw when it was stopped`,
      )
    }
  }

  stopAll(): void {
    for (const key of [...this.#inFlight.keys()]) this.#stop(key)
  }
}

interface InFlight {
  readonly effect: Effect
  begun: Begun
  /** True once its reports are ignored. */
  isStopped: boolean
}

type EffectOf<Kind extends Effect['kind']> = Extract<Effect, { readonly kind: Kind }>
type Post = (signal: Signal) => void

/** An effect that was begun: how it is given up, and how it is asked to stop, if it can be asked. */
interface Begun {
  stop?(): void
  cancel?(reason: string): void
}

/** Begins an effect, which posts its reports. */
type Starter<Kind extends Effect['kind']> = (effect: EffectOf<Kind>, run: RunContext, post: Post) => Begun

const starters: { readonly [Kind in Effect['kind']]: Starter<Kind> } = {
  model_call: beginModelCall,
  check_calls: beginCallCheck,
  tool: beginTool,
  reconcile: beginReconciliation,
  guardrails: (effect, run, post) =>
    beginCheck(run, (clock) => checkGuardrails(effect, { agent: getAgent(effect, run), clock, run }, post)),
  check_output: (effect, run, post) =>
    beginCheck(run, async (clock) => {
      const { state } = effect
      const verdict = await judgeAnswer(state, { agent: getAgent(effect, run), clock })
      post({ type: 'output_checked', turn: state.turn, verdict })
    }),
  summarize: beginSummary,
}

/** Begins a check whose timers end with it. */
function beginCheck({ host }: RunContext, check: (clock: Clock) => void | Promise<void>): Begun {
  const { clock, stop } = createStoppableClock(host.clock)
  void check(clock)
  return { stop }
}

function getAgent({ state }: Effect, run: RunContext): Agent<unknown> {
  return run.findAgent(state.agent)
}

function beginModelCall(effect: EffectOf<'model_call'>, run: RunContext, post: Post): Begun {
  const { state } = effect
  const { runId, turn, attempt, agent: name } = state
  const agent = getAgent(effect, run)
  const isCalled = (model: ModelRef): boolean => isSameModel(model, attempt.model)
  // The run may have been given another model than its agent's.
  const given =
    state.givenModel && isCalled(state.givenModel.model) ? run.findModel(attempt.model) : undefined
  const model = given ?? [agent.model, ...agent.fallbacks].find(isCalled)
  if (model === undefined) {
    const { provider, api, modelId } = attempt.model
    throw new ConfigurationError(
      `The agent ${name} has no model ${provider} ${api} ${modelId}, which is being called, according to the ledger. Put it back, or resume the run with the agent's code of today.`,
    )
  }
  const { timeouts, outputStream } = agent
  const about = { runId, agent: name, turn, context: run.context }
  const output = outputStream && new OutputStage({ transforms: outputStream.transforms, about })
  const call = { model, request: toModelRequest(state), turn, attempt: attempt.number }
  return startModelCall({ ...call, timeouts, output, owner: run }, run.host, post)
}

function beginCallCheck(effect: EffectOf<'check_calls'>, run: RunContext, post: Post): Begun {
  const { state } = effect
  const { offered } = state.reply
  const { host, context, results } = run
  const agent = getAgent(effect, run)
  const site = {
    state,
    context,
    report: host.report,
    ...(offered && { offered }),
    ...(results && { answering: (calls: readonly AskedCall[]) => results.answering(state, calls) }),
  }
  // Tools, guardrails and policies are asked about no input that is not there.
  const calls = state.calls.filter(({ inputRemoved }) => inputRemoved === undefined)
  return beginCheck(run, (clock) =>
    checkCalls(calls, { ...agent, tools: listAllTools(agent) }, { ...site, clock }, post),
  )
}

function beginTool(effect: EffectOf<'tool'>, run: RunContext, post: Post): Begun {
  const { call, state } = effect
  const { host, parts, context, results } = run
  const recorded = results?.serve(state, call)
  if (recorded || call.recorded !== undefined) {
    const ended = {
      type: 'tool_ended' as const,
      toolCallId: call.toolCallId,
      attempt: call.attempts,
      durationMs: 0,
    }
    if (recorded) {
      const { outcome, content, projected, shown, toolCallId: reused } = recorded
      post({ ...ended, outcome, content, ...omitUndefined({ projected, shown }), reused })
    } else {
      // It does not run for real: it has no approval for that.
      const text =
        'The recorded result that was to answer this call is not there any more. Nothing was run; ask for the call again.'
      post({ ...ended, outcome: 'failed', content: toTextContent('failed', text) })
    }
    return {}
  }
  if (call.child !== undefined && state.phase === 'executing')
    return startChild(driveChild(state, call, parts, context), { state, call, clock: host.clock }, post)
  const { agent = state.agent } = call as Partial<BackgroundCall>
  const tool = findCheckedTool(run.findAgent(agent), call, state)
  const messages = (): readonly Message[] => deepFreeze(readMessages(state.history))
  const reported: ToolSpending[] = []
  const left: NonNullable<ToolRun['left']> = () => {
    const now = run.state ?? state
    const { modelCalls = 0 } = findCall(now, call.toolCallId) ?? call
    // The latest reports of the tool are not on record yet.
    const pending = reported.slice(modelCalls - (call.modelCalls ?? 0))
    return computeLeftForCall(now, pending, host.clock.now())
  }
  const { graceMs = defaultLimits.graceMs } = state.limits
  return startTool(
    { tool, call, context: { ...toCallContext(effect, run), messages, left }, host, graceMs },
    (signal) => {
      if (signal.type === 'tool_progressed' && signal.spent) reported.push(signal.spent)
      post(signal)
    },
  )
}

function beginReconciliation(effect: EffectOf<'reconcile'>, run: RunContext, post: Post): Begun {
  const { call, state } = effect
  const tool = findCheckedTool(getAgent(effect, run), call, state)
  const context = toCallContext(effect, run)
  return beginCheck(run, (clock) =>
    reconcileCall({ tool, call, context, host: { ...run.host, clock } }, post),
  )
}

function toCallContext(
  { call, state }: EffectOf<'tool' | 'reconcile'>,
  { context }: RunContext,
): CallContext {
  const { turn = state.turn } = call as Partial<BackgroundCall>
  return { runId: state.runId, turn, toolCallId: call.toolCallId, context }
}

/** Returns the ending of a call with the shorter text that the model is shown, if the result is too long for it. */
function withShortResult(signal: Signal, effect: Effect, run: RunContext): Signal {
  if (effect.kind !== 'tool' || signal.type !== 'tool_ended' || signal.reused !== undefined) return signal
  const agent = getAgent(effect, run)
  const max = findTool(agent, effect.call.name)?.maxResultChars ?? agent.maxResultChars
  const { content, projected = content, toolCallId } = signal
  if (!isLonger(projected, max)) return signal
  const isReadable = findTool(agent, readResultName) !== undefined
  return { ...signal, shown: shortenResult(projected, { max, toolCallId, isReadable }) }
}

async function checkGuardrails(
  effect: EffectOf<'guardrails'>,
  { agent, clock, run }: { readonly agent: Agent<unknown>; readonly clock: Clock; readonly run: RunContext },
  post: Post,
): Promise<void> {
  const { on, guardrails: names, state } = effect
  const site = { clock, context: run.context, report: run.host.report }
  const { guardrails } = agent
  const signal = { type: 'guardrails_checked', on, guardrails: names } as const
  if (effect.on === 'input') {
    const finds = await guardInput(selectGuardrails(guardrails, 'input', names), effect, site)
    return post({ ...signal, place: effect.inputCheck.seq, finds })
  }
  const finds =
    effect.on === 'output'
      ? await guardOutput(selectGuardrails(guardrails, 'output', names), effect.state, site)
      : await guardResults(selectGuardrails(guardrails, 'tool_output', names), effect.state, site)
  post({ ...signal, place: state.turn, finds })
}

type AnswerVerdict = Extract<Signal, { readonly type: 'output_checked' }>['verdict']

/** Reads the answer of a reply by the agent's schema: the parsed answer, or what does not fit. */
export async function judgeAnswer(
  state: EffectOf<'check_output'>['state'],
  { agent, clock }: { readonly agent: Agent<unknown>; readonly clock: Clock },
): Promise<AnswerVerdict> {
  const refused = (error: string): AnswerVerdict => ({ valid: false, error })
  const written = extractJson(joinText(state.reply.message.parts))
  if (written === undefined) return refused('it is not JSON')
  const asked = state.definition.output
  try {
    const errors: string[] = []
    for (const output of asked ? readAnswers(asked, written) : [written]) {
      const read = await answerInTime(() => agent.output?.read(output), clock)
      if (read === late) return refused(`the check of the schema did not end within ${CHECK_MS} ms`)
      if (read === undefined || !('error' in read)) return { valid: true, output }
      errors.push(read.error)
    }
    return refused(`${asked?.wrapped ? 'in the field answer: ' : ''}${errors[0]}`)
  } catch (error) {
    return refused(`the check of the schema failed: ${formatError(error)}`)
  }
}

/** Asks the model that sums up, and posts one `summarized`. */
function beginSummary(effect: EffectOf<'summarize'>, run: RunContext, post: Post): Begun {
  const { compacting, state } = effect
  const { turn } = state
  const agent = getAgent(effect, run)
  let usage: Usage | undefined
  const say = (answer: Extract<Signal, { type: 'summarized' }>['answer']): void =>
    post({ type: 'summarized', turn, answer, ...omitUndefined({ usage }) })
  const model = agent.summarizer
  if (model === undefined || !isSameModel(model, compacting.model)) {
    const message = `The agent ${agent.name} has no model ${compacting.model.modelId} any more that sums up.`
    say({ failure: { class: 'not_found', message, retryable: false } })
    return {}
  }
  const request = buildSummaryRequest(state, compacting)
  const call = { model, request, turn, attempt: 1, timeouts: agent.timeouts }
  return startModelCall(call, run.host, (signal) => {
    if (signal.type === 'model_usage') usage = takeLargerUsage(usage ?? {}, pickTokenCounts(signal.usage))
    else if (signal.type === 'model_failed') say({ failure: signal.failure })
    else if (signal.type === 'model_finished') say({ text: joinText(signal.parts) })
  })
}
