import type { Agent } from '../agent/agent.ts'
import { type GivenHooks, hookListOf } from '../agent/hooks.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { RunState } from '../machine/state.ts'
import type { Model } from '../models/model.ts'
import { ConfigurationError, RunNotFoundError } from '../values/errors.ts'
import { parseRunId, type RunId } from '../values/ids.ts'
import { ChildRuns } from './children.ts'
import { RunDriver } from './run-driver.ts'
import type { RunResult } from './run-result.ts'
import type { EventSource, LiveEvents } from './run-streams.ts'
import type { Coordinators, DrivenRun, RuntimeParts } from './runtime-parts.ts'
import { KnownEnds } from './session.ts'

/** How long a drain waits for work in flight, unless another time is given. */
const drainGraceMs = 5_000

/** What the application gives a run, and no ledger holds. */
export interface GivenToRun {
  readonly agent?: Agent<unknown> | undefined
  readonly context?: unknown
  readonly model?: Model | undefined
  readonly hooks?: GivenHooks | undefined
}

/**
 * The coordinators of one runtime, one a run: so that a run is driven once in it.
 * A coordinator is held as long as its run is driven or has a subscriber; otherwise the handles hold it.
 */
export class RunRegistry implements Coordinators {
  readonly children: ChildRuns
  /** How the last runs of sessions ended here. */
  readonly ends: KnownEnds = new KnownEnds()
  readonly #parts: RuntimeParts
  readonly #coordinators = new Map<RunId, WeakRef<RunDriver>>()
  readonly #driven = new Set<DrivenRun>()
  readonly #watched = new Set<RunDriver>()
  readonly #reports = new Set<Promise<void>>()
  readonly #forget = new FinalizationRegistry<RunId>((runId) => {
    if (this.#coordinators.get(runId)?.deref() === undefined) this.#coordinators.delete(runId)
  })
  #isDrained = false
  /** Takes back that the ledger drains this runtime before it closes. */
  #endsBeforeClose: (() => void) | undefined

  constructor(parts: RuntimeParts) {
    this.#parts = parts
    this.children = new ChildRuns(parts, this)
  }

  /** The coordinator of a run: the one that is there, or a new one; in which `own` stands for the agent of its name. */
  driverOf(runId: RunId, own?: Agent<unknown>): RunDriver {
    const there = this.#coordinators.get(runId)?.deref()
    if (there) return there
    const coordinator = new RunDriver(runId, own ? withOwnAgent(this.#parts, own) : this.#parts, this)
    this.#coordinators.set(runId, new WeakRef(coordinator))
    this.#forget.register(coordinator, runId)
    return coordinator
  }

  /** The coordinator of a run that a caller names, with what the application gives it. */
  driverFor(text: string, { agent, context, model, hooks }: GivenToRun): RunDriver {
    this.requireOpen()
    const runId = parseRunId(text)
    if (runId === undefined) throw new RunNotFoundError(text)
    const { agents, models } = this.#parts
    if (agent) agents.register(agent)
    const coordinator = this.driverOf(runId)
    if (model) models.add(model)
    coordinator.setContext(context)
    coordinator.setModel(model)
    coordinator.setHooks(hookListOf(hooks))
    return coordinator
  }

  began(run: DrivenRun): void {
    this.#driven.add(run)
    this.#endsBeforeClose ??= this.#parts.ledger.beforeClose?.(() => this.#stop())
  }

  stopped(run: DrivenRun): void {
    this.#driven.delete(run)
    if (this.#driven.size > 0) return
    this.#endsBeforeClose?.()
    this.#endsBeforeClose = undefined
  }

  failed(runId: RunId): void {
    this.#coordinators.delete(runId)
  }

  reportEnd(state: RunState, context: unknown): Promise<void> {
    this.ends.ended(state)
    const report: Promise<void> = this.children
      .reportEnd(state, context)
      .finally(() => this.#reports.delete(report))
    this.#reports.add(report)
    return report
  }

  /** Resolves when no run is driven any more, and every end was reported to its parent. */
  async idle(): Promise<void> {
    while (this.#driven.size > 0 || this.#reports.size > 0) {
      await Promise.allSettled([...this.#reports, ...[...this.#driven].map((run) => run.whenStopped)])
    }
  }

  /** Holds a coordinator for one subscriber more. */
  retain(coordinator: RunDriver): void {
    coordinator.notice.watch()
    coordinator.elsewhere.watch()
    this.#watched.add(coordinator)
  }

  /** One subscriber less, of those for which it is held. */
  release(coordinator: RunDriver): void {
    coordinator.notice.unwatch()
    coordinator.elsewhere.unwatch()
    if (!coordinator.notice.isWatched) this.#watched.delete(coordinator)
  }

  /** Whether a process drives a run: this one, or another that has its lease. */
  async isDriven(runId: RunId): Promise<boolean> {
    if (this.#coordinators.get(runId)?.deref()?.isDrivenHere) return true
    return (await this.#parts.leases.elsewhereMs(runId)) > 0
  }

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
    await Promise.allSettled(this.#reports)
  }
}

/** The parts with which a fork is driven that has an agent of its own. */
function withOwnAgent(parts: RuntimeParts, own: Agent<unknown>): RuntimeParts {
  const { agents } = parts
  return { ...parts, agents: { ...agents, find: (name) => (name === own.name ? own : agents.find(name)) } }
}

/** Where the readers of a handle get the events of its run from. */
export class HandleSource implements EventSource {
  readonly #coordinator: RunDriver
  readonly #coordinators: RunRegistry
  readonly #parts: RuntimeParts

  constructor(coordinator: RunDriver, coordinators: RunRegistry, parts: RuntimeParts) {
    this.#coordinator = coordinator
    this.#coordinators = coordinators
    this.#parts = parts
  }

  get runId(): RunId {
    return this.#coordinator.runId
  }

  get ledger(): Ledger {
    return this.#parts.ledger
  }

  get live(): LiveEvents {
    return this.#coordinator.live
  }

  retain(): void {
    this.#coordinators.retain(this.#coordinator)
  }

  release(): void {
    this.#coordinators.release(this.#coordinator)
  }

  onThrow(error: unknown): void {
    this.#parts.host.report(error, `A subscriber of run ${this.runId} threw`)
  }

  onObserved(): void {
    this.#coordinator.notice.markObserved()
  }

  onUnhandledError(error: unknown): void {
    this.#coordinator.notice.onUnhandledError(error)
  }
}
