import type { Agent } from '../agent/agent.ts'
import { type GivenHooks, listHooks } from '../agent/hooks.ts'
import { ContextOfRecord, toRecordedRun } from '../agent/prepare-turn.ts'
import type { RunGiven } from '../events/agent-definition.ts'
import type { AgentRegistry, RuntimeRules } from '../agent/registry.ts'
import { nameCode, pickRules } from '../agent/run-rules.ts'
import type { StartCommand } from '../events/commands.ts'
import type { Schedule } from '../events/event-parts.ts'
import type { RunState } from '../machine/state.ts'
import type { Model } from '../models/model.ts'
import { ConfigurationError, RunNotFoundError } from '../values/errors.ts'
import { parseRunId, type RunId, deriveRunId } from '../values/ids.ts'
import { deepFreeze, omitUndefined } from '../values/json.ts'
import { reportChildEnd } from './children.ts'
import { createAnswer, PendingWork } from './commands.ts'
import type { Stretch } from './drive.ts'
import { requireRemovable } from './ended-content.ts'
import { buildFork, type ForkOptions } from './fork.ts'
import { findChangedInputFault } from './inbox.ts'
import { RunDriver } from './run-driver.ts'
import type { RunResult } from './run-result.ts'
import { toCancelCommand, cancelWith, type InContext, type RunOptions } from './runtime-options.ts'
import type { BegunRun, ReadyStart, RuntimeParts } from './runtime-parts.ts'
import { readPast } from './session.ts'
import {
  joinInput,
  type KeyedOrder,
  parseInput,
  resolveOptions,
  type RunInput,
  startCommand,
  withDefaults,
  withGiven,
} from './start-run.ts'

/** How long a drain waits for work in flight, unless another time is given. */
const drainGraceMs = 5_000

/** The parts of a run that only its application has: no ledger holds them. */
export interface GivenToRun {
  readonly agent?: Agent<unknown> | undefined
  readonly context?: unknown
  readonly model?: Model | undefined
  readonly hooks?: GivenHooks | undefined
  readonly rules?: RuntimeRules | undefined
}

/** How a run that begins is driven; by this process until it stops, unless it says otherwise. */
interface HowDriven {
  /** The run that it is, unless its idempotency key or chance says so. */
  readonly runId?: RunId
  /** Its start is recorded, and no more. */
  readonly isQueued?: boolean
  readonly stretch?: Stretch
  /** Its recorded options, where they are known already. */
  readonly given?: RunGiven
  readonly schedule?: Schedule
}

/** A run that was asked for, as this process holds it. */
export interface StartedRun {
  readonly driver: RunDriver
  /** For a run that was there: rejects if another order began it under the key. */
  readonly same?: Promise<void>
}

/**
 * The runs of one runtime, with one driver each: so that a run is driven once in it. A driver is held as long as its
 * run is driven or has a subscriber; otherwise the handles hold it.
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

  /** Returns the driver of a run, or creates one, which may have agents of its own. */
  ensureDriver(runId: RunId, agents?: AgentRegistry): RunDriver {
    const there = this.#drivers.get(runId)?.deref()
    if (there) return there
    const driver = new RunDriver(runId, agents ? { ...this.parts, agents } : this.parts)
    this.#drivers.set(runId, new WeakRef(driver))
    this.#forget.register(driver, runId)
    return driver
  }

  /** The driver of a run that a caller names, with what the application gives it. */
  driverFor(text: string, { agent, context, model, hooks, rules }: GivenToRun): RunDriver {
    this.requireOpen()
    const runId = parseRunId(text)
    if (runId === undefined) throw new RunNotFoundError(text)
    if (agent) this.parts.agents.register(agent)
    if (model) this.parts.models.add(model)
    const driver = this.ensureDriver(runId)
    driver.give({ context, model, hooks: listHooks(hooks), rules: rules ?? {} })
    return driver
  }

  start(
    agent: Agent<unknown>,
    input: RunInput,
    options: InContext<RunOptions>,
    { runId: known, isQueued = false, stretch, given, schedule }: HowDriven = {},
  ): StartedRun {
    const { newId, ledger, defaults } = this.parts
    this.parts.agents.requireUsed(options)
    const agents = this.parts.agents.inRun(options)
    const { register } = agents
    const { limits, whenBusy, subject, context, idempotencyKey, signal, model, hooks } = options
    const keyed = known ?? (idempotencyKey === undefined ? undefined : deriveRunId(idempotencyKey))
    const runId = keyed ?? newId()
    const own = given ?? resolveOptions(register(agent), withDefaults(options, defaults), agents)
    requireRemovable(register(agent), own.recording, ledger)
    const { message, before } = parseInput(input)
    const commandIn = (made: unknown): StartCommand => {
      const about = {
        ...omitUndefined({ limits, defaults: defaults.limits }),
        given: own,
        register,
        context: made,
      }
      const command = startCommand(runId, register(agent), message, about)
      return deepFreeze({ ...command, ...omitUndefined({ schedule }) })
    }
    // A context that is made of the record comes later, when it is known what that will say.
    const command = context instanceof ContextOfRecord ? undefined : commandIn(context)
    const { sessionId, from, edit, mayFollow, inputId, onInput } = options
    const past = deepFreeze(omitUndefined({ sessionId, from, edit, whenBusy, mayFollow }))
    const prepare = async (): Promise<ReadyStart> => {
      const whole = withGiven(await readPast(this.parts, past, subject), before)
      const joined = onInput && deepFreeze(await joinInput(onInput, whole, message))
      const { subject: inherited, ...found } = joined?.past ?? whole
      const about = {
        ...found,
        ...omitUndefined({ subject: subject ?? inherited, receipt: inputId }),
        ...(joined && onInput && { input: joined.input, onInput: nameCode(onInput, 'onInput') }),
      }
      if (command) return { command: { ...command, ...about }, context }
      const record = toRecordedRun({ runId, agent: agent.name, ...own, ...about, sessionId })
      const made = await (context as ContextOfRecord).contextFor(record)
      return { command: { ...commandIn(made), ...about }, context: made }
    }
    const begun = {
      prepare,
      isQueued,
      stretch,
      waits: whenBusy === 'wait',
      asked: () => toCancelCommand(signal),
    }
    const started = { context, model, hooks, rules: pickRules(options) }
    const history =
      from || onInput || sessionId !== undefined ? undefined : (withGiven({}, before).history ?? [])
    const order = {
      ...{ agent: agent.name, message: onInput ? undefined : message, history, sessionId, subject },
      ...own,
    }
    const run =
      keyed === undefined
        ? { driver: this.#begin(runId, begun, started) }
        : this.#beginOnce(runId, begun, { ...started, order })
    if (signal) cancelWith(signal, run.driver)
    return run
  }

  #begin(runId: RunId, begun: BegunRun, given: GivenToRun): RunDriver {
    const driver = this.driverFor(runId, given)
    driver.live.beginsHere()
    driver.start(begun)
    return driver
  }

  /** A run that is held here already keeps what it was given: a caller with another order must not lend it anything. */
  #beginOnce(
    runId: RunId,
    begun: BegunRun,
    { order, ...given }: GivenToRun & { readonly order: KeyedOrder },
  ): StartedRun {
    const held = this.ensureDriver(runId)
    const same = held.joined(order)
    if (same) return { driver: held, same }
    const driver = this.driverFor(runId, given)
    driver.startOnce(begun, order)
    return { driver }
  }

  /** Starts a run when the one before it in its session has ended. A failure is reported: no caller waits for it. */
  startLater(...[agent, input, options]: Parameters<RunRegistry['start']>): void {
    try {
      this.start(agent, input, { ...options, whenBusy: 'wait' })
    } catch (error) {
      this.parts.host.report(error, `The next run of session ${options.sessionId} could not begin`)
    }
  }

  fork(source: string, options: InContext<ForkOptions>): RunDriver {
    this.requireOpen()
    const { ledger, newId, onDrift, host } = this.parts
    const runId = newId()
    const driver = this.ensureDriver(runId, options.agent && this.parts.agents.inRun({}, options.agent))
    const rules = pickRules(options)
    driver.give({ context: options.context, model: undefined, hooks: [], rules })
    const own = { ...options, ...omitUndefined({ edit: deepFreeze(options.edit) }) }
    const agents = driver.parts.agents.inRun(rules)
    const { clock } = host
    const findFault: Parameters<typeof buildFork>[4] = (command, state) =>
      findChangedInputFault(command, state, {
        agent: agents.find(state.agent),
        clock,
        context: options.context,
      })
    driver.fork(() => buildFork(ledger, { source, runId }, own, { given: rules, onDrift }, findFault))
    return driver
  }

  /** The answer to a caller, who may not wait for it. */
  answer<T>(unread: string, ask: () => Promise<T>): Promise<T> {
    return createAnswer(ask(), (error) => this.parts.host.report(error, unread))
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
  failed(run: RunDriver): void {
    if (this.#drivers.get(run.runId)?.deref() === run) this.#drivers.delete(run.runId)
  }

  reportEnd(state: RunState, context: unknown): Promise<void> {
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
