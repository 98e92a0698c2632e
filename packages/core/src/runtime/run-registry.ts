import type { Agent } from '../agent/agent.ts'
import { type GivenHooks, hookListOf } from '../agent/hooks.ts'
import type { RunState } from '../machine/state.ts'
import type { Model } from '../models/model.ts'
import { ConfigurationError, RunNotFoundError } from '../values/errors.ts'
import { parseRunId, type RunId } from '../values/ids.ts'
import { reportChildEnd } from './children.ts'
import { PendingWork } from './commands.ts'
import { RunDriver } from './run-driver.ts'
import type { RunResult } from './run-result.ts'
import type { RuntimeParts } from './runtime-parts.ts'

/** How long a drain waits for work in flight, unless another time is given. */
const drainGraceMs = 5_000

/** The parts of a run that only its application has: no ledger holds them. */
export interface GivenToRun {
  readonly agent?: Agent<unknown> | undefined
  readonly context?: unknown
  readonly model?: Model | undefined
  readonly hooks?: GivenHooks | undefined
}

/**
 * The runs of one runtime, with one driver each: so that a run is driven once in it.
 * A driver is held as long as its run is driven or has a subscriber; otherwise the handles hold it.
 */
export class RunRegistry {
  readonly parts: RuntimeParts
  readonly #drivers = new Map<RunId, WeakRef<RunDriver>>()
  readonly #driven = new Set<RunDriver>()
  readonly #watched = new Set<RunDriver>()
  readonly #reports = new PendingWork()
  readonly #forget = new FinalizationRegistry<RunId>((runId) => {
    if (this.#drivers.get(runId)?.deref() === undefined) this.#drivers.delete(runId)
  })
  #isDrained = false
  /** Takes back that the ledger drains this runtime before it closes. */
  #endsBeforeClose: (() => void) | undefined

  constructor(parts: Omit<RuntimeParts, 'runs'>) {
    this.parts = { ...parts, runs: this }
  }

  /** The driver of a run: the one that is there, or a new one; in which `own` stands for the agent of its name. */
  driverOf(runId: RunId, own?: Agent<unknown>): RunDriver {
    const there = this.#drivers.get(runId)?.deref()
    if (there) return there
    const driver = new RunDriver(runId, own ? withOwnAgent(this.parts, own) : this.parts)
    this.#drivers.set(runId, new WeakRef(driver))
    this.#forget.register(driver, runId)
    return driver
  }

  /** The driver of a run that a caller names, with what the application gives it. */
  driverFor(text: string, { agent, context, model, hooks }: GivenToRun): RunDriver {
    this.requireOpen()
    const runId = parseRunId(text)
    if (runId === undefined) throw new RunNotFoundError(text)
    if (agent) this.parts.agents.register(agent)
    if (model) this.parts.models.add(model)
    const driver = this.driverOf(runId)
    driver.give({ context, model, hooks: hookListOf(hooks) })
    return driver
  }

  /** A drive session of the run begins. */
  began(run: RunDriver): void {
    this.#driven.add(run)
    this.#endsBeforeClose ??= this.parts.ledger.beforeClose?.(() => this.#stop())
  }

  /** The drive session of the run has ended. */
  stopped(run: RunDriver): void {
    this.#driven.delete(run)
    if (this.#driven.size > 0) return
    this.#endsBeforeClose?.()
    this.#endsBeforeClose = undefined
  }

  /** The writer of the run has failed: this process holds it no more. */
  failed({ runId }: RunDriver): void {
    this.#drivers.delete(runId)
  }

  /** Reports the end of a run to its parent, if it has one. */
  reportEnd(state: RunState, context: unknown): Promise<void> {
    this.parts.ends.ended(state)
    const report = reportChildEnd(state, this.parts, context)
    this.#reports.add(report)
    return report
  }

  /** Resolves when no run is driven any more, and every end was reported to its parent. */
  async idle(): Promise<void> {
    while (this.#driven.size > 0 || !this.#reports.isEmpty) {
      await Promise.allSettled([this.#reports.ended(), ...[...this.#driven].map((run) => run.whenStopped)])
    }
  }

  /** Holds a run that has readers, since it publishes the events. */
  retain(run: RunDriver): void {
    this.#watched.add(run)
  }

  /** The last reader of a run has left. */
  release(run: RunDriver): void {
    this.#watched.delete(run)
  }

  /** Resolves to true if a process drives the run: this one, or another that has its lease. */
  async isDriven(runId: RunId): Promise<boolean> {
    if (this.#drivers.get(runId)?.deref()?.isDrivenHere) return true
    return (await this.parts.leases.elsewhereMs(runId)) > 0
  }

  /** The runtime was drained, and continues no run. */
  get isDrained(): boolean {
    return this.#isDrained
  }

  /** Throws a `ConfigurationError` once the runtime was drained. */
  requireOpen(): void {
    if (!this.#isDrained) return
    throw new ConfigurationError(
      'This runtime was drained, by drain() or since its ledger was closed, and starts no more runs; create another.',
    )
  }

  /** Continues no run from here on, and returns the results of those that are driven, as they stop. */
  async drain(graceMs: number = drainGraceMs): Promise<readonly RunResult[]> {
    this.#isDrained = true
    const stops = await Promise.allSettled([...this.#driven].map((run) => run.drain(graceMs)))
    return stops.flatMap((stop) => (stop.status === 'fulfilled' ? [stop.value] : []))
  }

  /** Drains the runtime, and lets what its runs report to their parents be recorded. */
  async #stop(): Promise<void> {
    await this.drain()
    await this.#reports.ended()
  }
}

/** The parts with which a fork is driven that has an agent of its own. */
function withOwnAgent(parts: RuntimeParts, own: Agent<unknown>): RuntimeParts {
  const { agents } = parts
  return { ...parts, agents: { ...agents, find: (name) => (name === own.name ? own : agents.find(name)) } }
}
