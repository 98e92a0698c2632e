import { checkedTool, toolNamed, toolsNow } from '../definition/sourced-tools.ts'
import { ConfigurationError } from '../../vocabulary/errors.ts'
import {
  changedCallEffects,
  onlyCallsRequireEffects,
  requiredEffects,
  type Effect,
} from '../../machine/state/required-effects.ts'
import { messagesOf } from '../../machine/messages/history.ts'
import { textContent } from '../../machine/messages/outcome-text.ts'
import type { Call, ExecutingState, RunState } from '../../machine/state/state.ts'
import type { Host } from '../../ports/clock.ts'
import type { Model } from '../../ports/model.ts'
import { type Message, type ModelRef, sameModel } from '../../vocabulary/model/content.ts'
import { deepFreeze, freezeOwn } from '../../vocabulary/values/deep-freeze.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import type { Agent } from '../agent/agent.ts'
import { stoppableClock } from './answer-in-time.ts'
import { checkCalls } from './call-check.ts'
import { checkAnswer, checkGuardrails, summarize } from './check-effects.ts'
import type { ChildRuns } from '../children/child-runs.ts'
import { startChild } from '../children/child-effect.ts'
import { defaultLimits } from '../../vocabulary/limits/limits.ts'
import { guardrailsFor } from './guardrail-check.ts'
import { startModelCall, type ModelCallOwner } from './model-effect.ts'
import { OutputStage } from '../output/output-stage.ts'
import { modelRequest } from '../../machine/prompt/model-request.ts'
import type { AskedCall, RecordedResult, RecordedResults } from '../fork/recorded-results.ts'
import { readResultName } from '../../vocabulary/model/tool-definition.ts'
import { isLonger, shortenedResult } from './shortened-result.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { reconcileCall, startTool } from './tool-effect.ts'

/** What lets go of something in flight, and what asks it to stop, where it can be asked. */
interface Begun {
  stop?(): void
  cancel?(reason: string): void
}

/** Something in flight. */
class InFlight implements Begun {
  readonly #effect: Effect
  readonly #host: Pick<Host, 'report'>
  #begun: Begun = {}
  #isStopped = false

  constructor(effect: Effect, host: Pick<Host, 'report'>) {
    this.#effect = effect
    this.#host = host
  }

  /** Whether it is of no interest any more. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  begun(begun: Begun): void {
    this.#begun = begun
  }

  cancel(reason: string): void {
    this.#begun.cancel?.(reason)
  }

  stop(): void {
    this.#isStopped = true
    try {
      this.#begun.stop?.()
    } catch (error) {
      // A faulty adapter or tool must not stop the run that abandons it.
      const { state, kind } = this.#effect
      this.#host.report(
        error,
        `What was in flight for run ${state.runId} (${kind}) threw when it was stopped`,
      )
    }
  }
}

/** Whose effects they are, and what they may use. */
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

/**
 * Keeps in flight what the state says must be, and nothing else. Starts each effect once: a key that was started is
 * never started again, whatever became of it.
 */
export class Effects {
  readonly #options: EffectOptions
  readonly #started = new Set<string>()
  readonly #inFlight = new Map<string, InFlight>()
  /** The last state, where only its calls required effects. */
  #followed: ExecutingState | undefined

  constructor(options: EffectOptions) {
    this.#options = options
  }

  /** How many are in flight. */
  get size(): number {
    return this.#inFlight.size
  }

  /** Whether anything that the state wants is in flight. */
  isBusy(state: RunState): boolean {
    return requiredEffects(state).some(({ key }) => this.#inFlight.has(key))
  }

  /** Law 8: called only when every event of the state is in the ledger. With `draining`, nothing new is started. */
  follow(state: RunState, { draining = false }: { readonly draining?: boolean } = {}): void {
    const before = this.#followed
    this.#followed = !draining && onlyCallsRequireEffects(state) ? state : undefined
    if (before && this.#followed?.turn === before.turn) this.#followCalls(before, this.#followed)
    else this.#followAll(state, draining)
  }

  /**
   * Starts the check of a reply's calls by the tools themselves, which has no side effects, so that it may begin before the
   * reply is recorded. Returns whether there is one: guardrails and policies are the application's code, and wait.
   */
  startPureCheck(state: RunState): boolean {
    if (state.phase !== 'collecting' || this.#options.results) return false
    const { approval, guardrails } = this.#options.findAgent(state.agent)
    if (approval || guardrailsFor(guardrails, 'tool_input').length > 0) return false
    const [effect, ...others] = requiredEffects(state)
    if (effect?.kind !== 'check_calls' || others.length > 0) return false
    this.#startOnce(effect)
    return true
  }

  #followAll(state: RunState, draining: boolean): void {
    const wanted = requiredEffects(state)
    if (this.#inFlight.size > 0) this.#stopOthers(wanted)
    for (const effect of wanted) {
      if (!draining) this.#startOnce(effect)
      if (effect.kind === 'tool' && effect.cancelReason !== undefined) {
        this.#inFlight.get(effect.key)?.cancel(effect.cancelReason)
      }
    }
  }

  #stopOthers(wanted: readonly Effect[]): void {
    const keys = new Set(wanted.map(({ key }) => key))
    for (const key of this.#inFlight.keys()) if (!keys.has(key)) this.#stop(key)
  }

  /** Does the same from a state of the same turn on, looking only at the calls that have changed. */
  #followCalls(before: ExecutingState, state: ExecutingState): void {
    const { stopped, required } = changedCallEffects(before, state)
    for (const key of stopped) this.#stop(key)
    for (const effect of required) this.#startOnce(effect)
  }

  #startOnce(effect: Effect): void {
    if (this.#started.has(effect.key)) return
    this.#started.add(effect.key)
    this.#inFlight.set(effect.key, this.#start(effect))
  }

  #stop(key: string): void {
    const effect = this.#inFlight.get(key)
    this.#inFlight.delete(key)
    effect?.stop()
  }

  stopAll(): void {
    for (const effect of this.#inFlight.values()) effect.stop()
    this.#inFlight.clear()
  }

  #start(effect: Effect): InFlight {
    const inFlight = new InFlight(effect, this.#options.host)
    const begun = this.#begin(effect, (signal) => {
      // The caller may continue using the values it gave: what is recorded is a copy of them.
      if (inFlight.isStopped) return
      this.#options.post(freezeOwn(this.#shortened(effect, signal)))
    })
    inFlight.begun(begun)
    return inFlight
  }

  #givenModel({ givenModel }: RunState, ref: ModelRef): Model | undefined {
    return givenModel && sameModel(givenModel.model, ref) ? this.#options.findGivenModel(ref) : undefined
  }

  /** The ending of a call with what the model is shown of it, where it is too long for the model. */
  #shortened(effect: Effect, signal: Signal): Signal {
    if (effect.kind !== 'tool' || signal.type !== 'tool_ended' || signal.reused !== undefined) return signal
    const agent = this.#options.findAgent(effect.state.agent)
    const max = toolNamed(agent, effect.call.name)?.maxResultChars ?? agent.maxResultChars
    const { content, projected = content, toolCallId } = signal
    if (!isLonger(projected, max)) return signal
    const isReadable = toolNamed(agent, readResultName) !== undefined
    return { ...signal, shown: shortenedResult(projected, { max, toolCallId, isReadable }) }
  }

  #begin(effect: Effect, post: (signal: Signal) => void): Begun {
    const { host, children, context: own } = this.#options
    const { runId, turn, agent: name, limits } = effect.state
    const agent = this.#options.findAgent(name)
    switch (effect.kind) {
      case 'model_call': {
        const { state } = effect
        const { attempt } = state
        const given = this.#givenModel(state, attempt.model)
        const call = { model: given ?? modelOf(agent, attempt.model), request: modelRequest(state), turn }
        const { timeouts, outputStream } = agent
        const about = { runId, agent: name, turn, context: own }
        const output = outputStream && new OutputStage({ transforms: outputStream.transforms, about })
        const owner = this.#options
        return startModelCall({ ...call, attempt: attempt.number, timeouts, output, owner }, host, post)
      }
      case 'check_calls': {
        const { state } = effect
        const { clock, stop } = stoppableClock(host.clock)
        const { offered } = state.reply
        const { results } = this.#options
        const context = {
          state,
          context: own,
          clock,
          ...(offered && { offered }),
          ...(results && { answering: (calls: readonly AskedCall[]) => results.answering(state, calls) }),
        }
        void checkCalls(state.calls, { ...agent, tools: toolsNow(agent) }, context, post)
        return { stop }
      }
      case 'tool': {
        const { call, state } = effect
        const recorded = this.#options.results?.serve(state, call)
        if (recorded) {
          post(endingOf(call, recorded))
          return {}
        }
        if (call.recorded !== undefined) {
          post(lostRecord(call))
          return {}
        }
        if (call.child !== undefined)
          return startChild({ state, call, children, context: own, clock: host.clock }, post)
        const tool = checkedTool(agent, call, state)
        const messages = (): readonly Message[] => deepFreeze(messagesOf(state.history))
        const context = { runId, turn, toolCallId: call.toolCallId, context: own, messages }
        const { graceMs = defaultLimits.graceMs } = limits
        return startTool({ tool, call, context, host, graceMs }, post)
      }
      case 'reconcile': {
        const { call } = effect
        const { clock, stop } = stoppableClock(host.clock)
        const context = { runId, turn, toolCallId: call.toolCallId, context: own }
        const tool = checkedTool(agent, call, effect.state)
        void reconcileCall({ tool, call, context, host: { ...host, clock } }, post)
        return { stop }
      }
      case 'guardrails': {
        const { clock, stop } = stoppableClock(host.clock)
        void checkGuardrails({ effect, agent, clock, context: own }, post)
        return { stop }
      }
      case 'check_output': {
        const { clock, stop } = stoppableClock(host.clock)
        void checkAnswer({ effect, agent, clock }, post)
        return { stop }
      }
      case 'summarize':
        return { stop: summarize({ effect, agent, host }, post) }
    }
  }
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

function modelOf({ name, model, fallbacks }: Agent<unknown>, ref: ModelRef): Model {
  const called = [model, ...fallbacks].find((known) => sameModel(known, ref))
  if (called) return called
  throw new ConfigurationError(
    `The agent ${name} has no model ${ref.provider} ${ref.api} ${ref.modelId}, which the ledger says is called now. Put it back, or resume the run with the agent's code of today.`,
  )
}
