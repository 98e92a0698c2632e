import {
  changedCallEffects,
  onlyCallsRequireEffects,
  requiredEffects,
  type Effect,
} from '../../machine/required-effects.ts'
import type { ExecutingState, RunState } from '../../machine/state.ts'
import type { Host } from '../../values/host.ts'
import { freezeOwn } from '../../values/json.ts'
import { beginEffect, withShortResult, type Begun, type EffectOptions } from './begin-effect.ts'
import { guardrailsFor } from '../checks/guardrail-check.ts'

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
    const begun = beginEffect(effect, this.#options, (signal) => {
      if (inFlight.isStopped) return
      // The caller may continue using the values it gave: what is recorded is a copy of them.
      this.#options.post(freezeOwn(withShortResult(signal, effect, this.#options)))
    })
    inFlight.begun(begun)
    return inFlight
  }
}
