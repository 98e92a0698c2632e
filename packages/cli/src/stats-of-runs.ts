import type { FinishReason, Ledger, ModelRef, RunId, RunState, Usage } from '@tallystick/core'
import { addUsage, evolve, RunNotFoundError } from '@tallystick/core'
import { SpendingOfRun, type Spending } from './spending-of-run.ts'
import { waitsOf } from './waits.ts'
import { runStatus, type runStatuses, type RunStatus } from './view/run-status.ts'

/** A run that a person may have to do something about. */
export interface NotedRun extends RunStatus {
  readonly runId: RunId
  readonly agent: string
  /** When its last event was, in milliseconds since 1970 UTC. */
  readonly at: number
}

/** What one agent took of one model. */
export interface AgentSpending {
  readonly agent: string
  readonly model: ModelRef
  readonly calls: number
  readonly usage: Usage
  /** US dollars for the calls that had a price; absent where none had. */
  readonly costUsd?: number
  /** Calls that had no price. */
  readonly unpriced: number
}

/** What a ledger says of its runs. */
export interface Stats {
  /** How many runs stand how. */
  readonly runs: Readonly<Record<(typeof runStatuses)[number], number>>
  /** Those that only a command takes further. Of runs that work for others, the one at the top. */
  readonly suspended: readonly NotedRun[]
  /** Those that are in flight or interrupted. */
  readonly unfinished: readonly NotedRun[]
  /** Those that ended since then, otherwise than with an answer or by being cancelled. */
  readonly failed: readonly NotedRun[]
  /** Of model calls since then; the dearest first, then those with most tokens. */
  readonly spending: readonly AgentSpending[]
}

/** Reasons of a run that came to what was wanted. */
const wanted: ReadonlySet<FinishReason> = new Set(['answered', 'handed_back', 'stopped', 'cancelled'])

/** Gathers what a ledger says of its runs, from one after the other. */
export class StatsOfRuns {
  readonly #runs = { done: 0, suspended: 0, in_flight: 0, interrupted: 0, unreadable: 0 }
  readonly #suspended: NotedRun[] = []
  readonly #unfinished: NotedRun[] = []
  readonly #failed: NotedRun[] = []
  readonly #spending = new Map<string, AgentSpending>()
  readonly #since: number
  readonly #isOpen: boolean

  constructor(since: number, isOpen: boolean) {
    this.#since = since
    this.#isOpen = isOpen
  }

  /** Reads a run; answers how many events it has. */
  async read(ledger: Ledger, runId: RunId): Promise<number> {
    let state: RunState | undefined
    const spent = new SpendingOfRun()
    for await (const event of ledger.read(runId)) {
      state = evolve(state, event)
      spent.hear(event)
    }
    if (state === undefined) throw new RunNotFoundError(runId)
    const standing = runStatus(state, { waits: await waitsOf(ledger, state), isOpen: this.#isOpen })
    this.#runs[standing.status]++
    this.#note(state, standing)
    for (const spending of spent.all) if (spending.at >= this.#since) this.#add(spending)
    return state.seq
  }

  unreadable(): void {
    this.#runs.unreadable++
  }

  get stats(): Stats {
    const spending = [...this.#spending.values()].sort(
      (a, b) =>
        (b.costUsd ?? 0) - (a.costUsd ?? 0) ||
        tokensOf(b) - tokensOf(a) ||
        b.calls - a.calls ||
        (a.agent < b.agent ? -1 : 1),
    )
    return {
      ...{ runs: this.#runs, suspended: this.#suspended, unfinished: this.#unfinished },
      ...{ failed: this.#failed, spending },
    }
  }

  #note(state: RunState, standing: RunStatus): void {
    const { runId, agent, at, parent } = state
    const noted = { runId, agent, at, ...standing }
    if (state.phase !== 'done') {
      if (standing.status !== 'suspended') this.#unfinished.push(noted)
      else if (parent?.relation !== 'child') this.#suspended.push(noted)
    } else if (at >= this.#since && !wanted.has(state.reason)) this.#failed.push(noted)
  }

  #add({ agent, model, usage = {}, costUsd }: Spending): void {
    const key = JSON.stringify([agent, model.provider, model.modelId])
    const before = this.#spending.get(key) ?? { agent, model, calls: 0, usage: {}, unpriced: 0 }
    const cost =
      costUsd === undefined && before.costUsd === undefined
        ? undefined
        : (before.costUsd ?? 0) + (costUsd ?? 0)
    this.#spending.set(key, {
      ...{ agent, model, calls: before.calls + 1, usage: addUsage(before.usage, usage) },
      ...(cost !== undefined && { costUsd: cost }),
      unpriced: before.unpriced + (costUsd === undefined ? 1 : 0),
    })
  }
}

function tokensOf({ usage }: AgentSpending): number {
  return (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
}
