import { ConfigurationError } from '../../values/errors.ts'
import { defaultLimits } from '../../events/limits.ts'
import { type Message, type ModelRef, sameModel } from '../../events/content.ts'
import { readResultName } from '../../events/model-request.ts'
import type { Signal } from '../../events/signals.ts'
import { deepFreeze, omitUndefined } from '../../values/json.ts'
import { messagesOf } from '../../machine/history.ts'
import { textContent } from '../../machine/calls.ts'
import { modelRequest } from '../../machine/request.ts'
import type { Effect } from '../../machine/required-effects.ts'
import type { Call, StreamingState } from '../../machine/state.ts'
import type { Host } from '../../values/host.ts'
import type { Model } from '../../models/model.ts'
import type { CallContext } from '../../tools/tool.ts'
import type { Agent } from '../agent/agent.ts'
import { startChild } from '../children/child-effect.ts'
import type { ChildRuns } from '../children/child-runs.ts'
import { checkedTool, toolNamed, toolsNow } from '../definition/sourced-tools.ts'
import type { AskedCall, RecordedResult, RecordedResults } from '../fork/recorded-results.ts'
import { OutputStage } from '../output/output-stage.ts'
import { stoppableClock } from '../checks/answer-in-time.ts'
import { checkCalls } from '../checks/call-check.ts'
import { checkAnswer, checkGuardrails, summarize } from './check-effects.ts'
import { startModelCall, type ModelCallOwner } from './model-effect.ts'
import { isLonger, shortenedResult } from './shortened-result.ts'
import { reconcileCall, startTool } from './tool-effect.ts'

/** An effect that was begun: how it is given up, and how it is asked to stop, if it can be asked. */
export interface Begun {
  stop?(): void
  cancel?(reason: string): void
}

/** What the effects of a run may use, and who takes what they report. */
export interface EffectOptions extends ModelCallOwner {
  findAgent(name: string): Agent<unknown>
  /** The model that the run is given. */
  findGivenModel(ref: ModelRef): Model | undefined
  readonly host: Host
  /** What the application gave this run. */
  readonly context: unknown
  readonly children: ChildRuns
  /** What a fork is served instead of running its tools. */
  readonly results: RecordedResults | undefined
  post(signal: Signal): void
}

/** Takes what an effect reports. */
type Post = (signal: Signal) => void

/** Begins an effect, which posts what it reports. */
export function beginEffect(effect: Effect, options: EffectOptions, post: Post): Begun {
  const { host, context } = options
  switch (effect.kind) {
    case 'model_call':
      return beginModelCall(effect, options, post)
    case 'check_calls':
      return beginCallCheck(effect, options, post)
    case 'tool':
      return beginTool(effect, options, post)
    case 'reconcile':
      return beginReconciliation(effect, options, post)
    case 'guardrails': {
      const { clock, stop } = stoppableClock(host.clock)
      void checkGuardrails({ effect, agent: agentOf(effect, options), clock, context }, post)
      return { stop }
    }
    case 'check_output': {
      const { clock, stop } = stoppableClock(host.clock)
      void checkAnswer({ effect, agent: agentOf(effect, options), clock }, post)
      return { stop }
    }
    case 'summarize':
      return { stop: summarize({ effect, agent: agentOf(effect, options), host }, post) }
  }
}

type EffectOf<Kind extends Effect['kind']> = Extract<Effect, { readonly kind: Kind }>

function agentOf({ state }: Effect, options: EffectOptions): Agent<unknown> {
  return options.findAgent(state.agent)
}

function beginModelCall(effect: EffectOf<'model_call'>, options: EffectOptions, post: Post): Begun {
  const { state } = effect
  const { runId, turn, attempt, agent: name } = state
  const agent = agentOf(effect, options)
  const model = givenModel(state, options) ?? modelOf(agent, attempt.model)
  const { timeouts, outputStream } = agent
  const about = { runId, agent: name, turn, context: options.context }
  const output = outputStream && new OutputStage({ transforms: outputStream.transforms, about })
  const call = { model, request: modelRequest(state), turn, attempt: attempt.number }
  return startModelCall({ ...call, timeouts, output, owner: options }, options.host, post)
}

/** The model that the run was given, if it is the one to call. */
function givenModel(
  { givenModel: given, attempt }: StreamingState,
  options: EffectOptions,
): Model | undefined {
  return given && sameModel(given.model, attempt.model) ? options.findGivenModel(attempt.model) : undefined
}

function modelOf({ name, model, fallbacks }: Agent<unknown>, ref: ModelRef): Model {
  const called = [model, ...fallbacks].find((known) => sameModel(known, ref))
  if (called) return called
  throw new ConfigurationError(
    `The agent ${name} has no model ${ref.provider} ${ref.api} ${ref.modelId}, which the ledger says is called now. Put it back, or resume the run with the agent's code of today.`,
  )
}

function beginCallCheck(effect: EffectOf<'check_calls'>, options: EffectOptions, post: Post): Begun {
  const { state } = effect
  const { offered } = state.reply
  const { host, context, results } = options
  const agent = agentOf(effect, options)
  const { clock, stop } = stoppableClock(host.clock)
  const site = {
    state,
    context,
    clock,
    report: host.report,
    ...(offered && { offered }),
    ...(results && { answering: (calls: readonly AskedCall[]) => results.answering(state, calls) }),
  }
  // Tools, guardrails and policies are asked about no input that is not there.
  const calls = state.calls.filter(({ inputRemoved }) => inputRemoved === undefined)
  void checkCalls(calls, { ...agent, tools: toolsNow(agent) }, site, post)
  return { stop }
}

function beginTool(effect: EffectOf<'tool'>, options: EffectOptions, post: Post): Begun {
  const { call, state } = effect
  const { host, children, context, results } = options
  const recorded = results?.serve(state, call)
  if (recorded || call.recorded !== undefined) {
    post(recorded ? endingOf(call, recorded) : lostRecord(call))
    return {}
  }
  if (call.child !== undefined) return startChild({ state, call, children, context, clock: host.clock }, post)
  const tool = checkedTool(agentOf(effect, options), call, state)
  const messages = (): readonly Message[] => deepFreeze(messagesOf(state.history))
  const { graceMs = defaultLimits.graceMs } = state.limits
  return startTool(
    { tool, call, context: { ...callContext(effect, options), messages }, host, graceMs },
    post,
  )
}

function beginReconciliation(effect: EffectOf<'reconcile'>, options: EffectOptions, post: Post): Begun {
  const { call, state } = effect
  const { host } = options
  const { clock, stop } = stoppableClock(host.clock)
  const tool = checkedTool(agentOf(effect, options), call, state)
  const context = callContext(effect, options)
  void reconcileCall({ tool, call, context, host: { ...host, clock } }, post)
  return { stop }
}

function callContext(
  { call, state }: EffectOf<'tool' | 'reconcile'>,
  { context }: EffectOptions,
): CallContext {
  return { runId: state.runId, turn: state.turn, toolCallId: call.toolCallId, context }
}

/** Returns the ending of a call with the shorter text that the model is shown, if the result is too long for it. */
export function withShortResult(signal: Signal, effect: Effect, options: EffectOptions): Signal {
  if (effect.kind !== 'tool' || signal.type !== 'tool_ended' || signal.reused !== undefined) return signal
  const agent = agentOf(effect, options)
  const max = toolNamed(agent, effect.call.name)?.maxResultChars ?? agent.maxResultChars
  const { content, projected = content, toolCallId } = signal
  if (!isLonger(projected, max)) return signal
  const isReadable = toolNamed(agent, readResultName) !== undefined
  return { ...signal, shown: shortenedResult(projected, { max, toolCallId, isReadable }) }
}

function endingOf(
  { toolCallId, attempts: attempt }: Call,
  { outcome, content, projected, shown, toolCallId: reused }: RecordedResult,
): Signal {
  const ended = { type: 'tool_ended' as const, toolCallId, attempt, outcome, content, durationMs: 0 }
  return { ...ended, ...omitUndefined({ projected, shown }), reused }
}

/** A call that a recorded result was to answer does not run for real: it has no approval for that. */
function lostRecord({ toolCallId, attempts: attempt }: Call): Signal {
  const text =
    'The recorded result that was to answer this call is not there any more. Nothing was run; ask for the call again.'
  return {
    type: 'tool_ended',
    toolCallId,
    attempt,
    outcome: 'failed',
    durationMs: 0,
    content: textContent('failed', text),
  }
}
