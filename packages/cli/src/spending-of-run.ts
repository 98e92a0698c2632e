import type { ModelRef, RuntimeEvent, Usage } from '@tallystick/core'

/** What one attempt of a model call took, of a run's turn or of a summary. */
export interface Spending {
  /** The agent that had the conversation. */
  readonly agent: string
  readonly model: ModelRef
  /** When it started, in milliseconds since 1970 UTC. */
  readonly at: number
  /** Absent where the provider said nothing. */
  readonly usage?: Usage
  /** US dollars; absent where there was no price. */
  readonly costUsd?: number
}

/**
 * Gathers the model calls of one run from its events, in order. What runs that work for it took is theirs, and what a
 * fork shares with the other run was taken by that one.
 */
export class SpendingOfRun {
  readonly #attempts = new Map<string, Spending>()
  #agent = ''
  #sharedSeq = 0
  #summaries = 0

  hear(event: RuntimeEvent): void {
    const { at, seq, turn } = event
    if (event.type === 'run_started') {
      this.#agent = event.agent
      if (event.parent?.relation === 'fork') this.#sharedSeq = event.parent.seq
    }
    if (event.type === 'agent_handed_off') this.#agent = event.to
    if (seq <= this.#sharedSeq) return
    if (event.type === 'model_call_started')
      this.#begin(`${turn} ${event.attempt}`, { agent: this.#agent, model: event.model, at })
    if (event.type === 'usage_updated') this.#take(`${turn} ${event.attempt}`, event)
    if (event.type === 'compaction_started')
      this.#begin(`summary ${++this.#summaries}`, { agent: this.#agent, model: event.model, at })
    if (event.type === 'context_compacted') this.#take(`summary ${this.#summaries}`, event)
  }

  get all(): readonly Spending[] {
    return [...this.#attempts.values()]
  }

  #begin(key: string, spending: Spending): void {
    this.#attempts.set(key, spending)
  }

  /** Numbers are totals of the attempt, so a later report replaces an earlier one. */
  #take(key: string, { usage, costUsd }: { readonly usage?: Usage; readonly costUsd?: number }): void {
    const attempt = this.#attempts.get(key)
    if (attempt === undefined || usage === undefined) return
    const known = { ...attempt.usage, ...usage }
    this.#attempts.set(key, { ...attempt, usage: known, ...(costUsd !== undefined && { costUsd }) })
  }
}
