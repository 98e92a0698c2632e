import type { Subscription } from 'rxjs'
import { effectsOf, type Effect } from '../machine/effects-of.ts'
import { modelRequest, sameModel } from '../machine/model-request.ts'
import type { RunState } from '../machine/state.ts'
import type { Host } from '../ports/clock.ts'
import type { Model } from '../ports/model.ts'
import type { ModelRef } from '../vocabulary/content.ts'
import type { Signal } from '../vocabulary/signal.ts'
import type { Agent } from './agent.ts'
import { startModelCall } from './model-effect.ts'
import { checkCalls } from './call-check.ts'
import { reconcileCall, startTool, type RunningTool } from './tool-effect.ts'

/** Something in flight. */
interface InFlight {
  cancel?(reason: string): void
  stop(): void
}

/**
 * Keeps in flight what the state says must be, and nothing else. Starts each effect once: a key that was started is
 * never started again, whatever became of it.
 */
export class Effects {
  readonly #agent: Agent
  readonly #host: Host
  readonly #post: (signal: Signal) => void
  readonly #started = new Set<string>()
  readonly #inFlight = new Map<string, InFlight>()

  constructor(agent: Agent, host: Host, post: (signal: Signal) => void) {
    this.#agent = agent
    this.#host = host
    this.#post = post
  }

  /** Whether anything that the state wants is in flight. */
  busyWith(state: RunState): boolean {
    return effectsOf(state).some(({ key }) => this.#inFlight.has(key))
  }

  /** Law 8: called only when every event of the state is in the ledger. With `hold`, nothing new is started. */
  follow(state: RunState, { hold = false }: { readonly hold?: boolean } = {}): void {
    const wanted = effectsOf(state)
    const keys = new Set(wanted.map(({ key }) => key))
    for (const [key, effect] of this.#inFlight) {
      if (keys.has(key)) continue
      this.#inFlight.delete(key)
      effect.stop()
    }
    for (const effect of wanted) {
      if (!hold && !this.#started.has(effect.key)) {
        this.#started.add(effect.key)
        this.#inFlight.set(effect.key, this.#start(effect, state))
      }
      if (effect.kind === 'tool' && effect.cancelReason !== undefined) {
        this.#inFlight.get(effect.key)?.cancel?.(effect.cancelReason)
      }
    }
  }

  stopAll(): void {
    for (const effect of this.#inFlight.values()) effect.stop()
    this.#inFlight.clear()
  }

  #start(effect: Effect, state: RunState): InFlight {
    let stopped = false
    const post = (signal: Signal): void => {
      if (!stopped) this.#post(signal)
    }
    const stopWith = (stop?: () => void): InFlight => ({
      stop: () => {
        stopped = true
        try {
          stop?.()
        } catch (error) {
          // Whoever cannot let go is left behind: the run does not depend on it any more.
          this.#host.report(error)
        }
      },
    })
    const { runId, turn } = state
    switch (effect.kind) {
      case 'model_call': {
        if (state.phase !== 'streaming') return stopWith()
        const call = {
          model: this.#model(state.attempt.model),
          request: modelRequest(state),
          turn,
          attempt: state.attempt.number,
        }
        const subscription: Subscription | undefined = startModelCall(call, this.#host.clock, post)
        return stopWith(() => subscription?.unsubscribe())
      }
      case 'check_calls': {
        if (state.phase !== 'collecting') return stopWith()
        void checkCalls(state.calls, this.#agent, { runId, turn }, post)
        return stopWith()
      }
      case 'tool': {
        const { call } = effect
        const tool = this.#tool(call.name)
        const context = { runId, turn, toolCallId: call.toolCallId }
        if (tool === undefined) {
          const text = `The tool ${call.name} is not there any more.`
          const ended = {
            toolCallId: call.toolCallId,
            attempt: call.attempts,
            outcome: 'failed',
            durationMs: 0,
          } as const
          post({ type: 'tool_ended', ...ended, content: [{ type: 'text', text }] })
          return stopWith()
        }
        const running: RunningTool = startTool({ tool, call, context, host: this.#host }, post)
        return { ...stopWith(() => running.abandon()), cancel: (reason) => running.cancel(reason) }
      }
      case 'reconcile': {
        const { call } = effect
        const context = { runId, turn, toolCallId: call.toolCallId }
        void reconcileCall({ tool: this.#tool(call.name), call, context, host: this.#host }, post)
        return stopWith()
      }
    }
  }

  #model(ref: ModelRef): Model {
    const { model, fallbacks } = this.#agent
    return [model, ...fallbacks].find((known) => sameModel(known, ref)) ?? model
  }

  #tool(name: string): Agent['tools'][number] | undefined {
    return this.#agent.tools.find((tool) => tool.name === name)
  }
}
