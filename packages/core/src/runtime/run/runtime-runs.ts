import type { StartCommand } from '../../events/commands.ts'
import { type RunId, runIdOfKey } from '../../values/ids.ts'
import { deepFreeze, omitUndefined } from '../../values/json.ts'
import type { Agent } from '../agent/agent.ts'
import { hookListOf } from '../agent/hooks.ts'
import { CoordinatorRegistry, type GivenToRun } from '../coordinator/coordinator-registry.ts'
import type { BegunRun } from '../coordinator/drive-session.ts'
import { HandleSource } from '../coordinator/handle-source.ts'
import type { RunCoordinator } from '../coordinator/run-coordinator.ts'
import type { ReadyStart } from '../drive/run-loop.ts'
import { ContextOfRecord, recordedRun } from '../definition/run-context.ts'
import { HeldLeases } from '../drive/held-leases.ts'
import { KnownModels } from '../definition/known-models.ts'
import { agentRegistry } from '../definition/registered-agents.ts'
import type { RuntimeParts } from '../definition/runtime-parts.ts'
import { forkOf, type ForkOptions } from '../fork/fork.ts'
import { answerTo, unreadAnswer } from '../commands/answer.ts'
import type { Waiting } from '../reading/follow-run.ts'
import { interruptedRuns } from '../reading/listed-runs.ts'
import { requireRemovable } from '../coordinator/ended-content.ts'
import { givenInput, withGiven, type RunInput } from '../session/run-input.ts'
import { pastOf } from '../session/session-past.ts'
import { givenIn, withDefaults, type KeyedOrder } from '../session/recorded-options.ts'
import { startCommand } from '../session/start-command.ts'
import { cancelCommandOf, cancelWith } from './cancel-signal.ts'
import { checkedHost } from './checked-host.ts'
import { uniqueName } from '../../values/host.ts'
import { runIdMaker } from '../session/run-ids.ts'
import { runOf, type Run } from './run.ts'
import type { InContext, RunOptions, RuntimeOptions } from './runtime.ts'

/** A run that was asked for, as this process holds it. */
export interface StartedRun {
  readonly coordinator: RunCoordinator
  /** For a run that was there: rejects where another order began it under the key. */
  readonly same?: Promise<void>
}

/** The runs of a runtime: starts, forks and finds them, and makes their handles. */
export class RuntimeRuns {
  readonly coordinators: CoordinatorRegistry
  /** What waiting for a run needs. */
  readonly waiting: Waiting
  readonly #parts: RuntimeParts

  constructor({
    ledger,
    agents: known = [],
    prices = {},
    onDrift = 'continue',
    host: own = {},
    models: given = [],
    model,
    modelSettings,
    limits,
    recording,
    hooks,
    contextOf,
    ...rules
  }: RuntimeOptions) {
    const host = checkedHost(own)
    const agents = agentRegistry(prices, rules)
    for (const agent of known) agents.register(agent)
    const models = new KnownModels(agents, given)
    if (model) models.add(model)
    const defaults = {
      ...omitUndefined({ model, modelSettings, limits, recording }),
      hooks: hookListOf(hooks),
    }
    this.#parts = {
      ledger,
      host,
      leases: new HeldLeases(ledger, host, uniqueName()),
      agents,
      models,
      defaults,
      onDrift,
      ...omitUndefined({ contextOf }),
      newId: runIdMaker(host),
    }
    this.coordinators = new CoordinatorRegistry(this.#parts)
    this.waiting = { ledger, clock: host.clock, runs: this.coordinators }
  }

  start(agent: Agent<unknown>, input: RunInput, options: InContext<RunOptions>): StartedRun {
    const { agents, newId, ledger, defaults } = this.#parts
    const { register } = agents
    const { limits, whenBusy, subject, context, idempotencyKey, signal, model, hooks } = options
    const runId = idempotencyKey === undefined ? newId() : runIdOfKey(idempotencyKey)
    const given = givenIn(register(agent), withDefaults(options, defaults), agents)
    requireRemovable(register(agent), given.recording, ledger)
    const { message, before } = givenInput(input)
    const commandIn = (made: unknown): StartCommand => {
      const own = { ...omitUndefined({ limits, defaults: defaults.limits }), given, register, context: made }
      return deepFreeze(startCommand(runId, register(agent), message, own))
    }
    // A context that is made of the record comes later, when it is known what that will say.
    const command = context instanceof ContextOfRecord ? undefined : commandIn(context)
    const { sessionId, from, edit, mayFollow, inputId } = options
    const past = deepFreeze(omitUndefined({ sessionId, from, edit, whenBusy, mayFollow }))
    const prepare = async (): Promise<ReadyStart> => {
      const { subject: inherited, ...found } = withGiven(
        await pastOf({ ...this.waiting, ends: this.coordinators.ends }, past),
        before,
      )
      const about = { ...found, ...omitUndefined({ subject: subject ?? inherited, receipt: inputId }) }
      if (command) return { command: { ...command, ...about }, context }
      const record = recordedRun({ runId, agent: agent.name, ...given, ...about, sessionId })
      const made = await (context as ContextOfRecord).contextFor(record)
      return { command: { ...commandIn(made), ...about }, context: made }
    }
    const begun = { prepare, waits: whenBusy === 'wait', asked: () => cancelCommandOf(signal) }
    const started = { context, model, hooks }
    const history = from || sessionId !== undefined ? undefined : (withGiven({}, before).history ?? [])
    const order = { agent: agent.name, message, history, sessionId, subject, ...given }
    const run =
      idempotencyKey === undefined
        ? { coordinator: this.#begin(runId, begun, started) }
        : this.#beginOnce(runId, begun, { ...started, order })
    if (signal) cancelWith(signal, run.coordinator)
    return run
  }

  #begin(runId: RunId, begun: BegunRun, given: GivenToRun): RunCoordinator {
    const coordinator = this.coordinators.coordinatorFor(runId, given)
    coordinator.live.beginsHere()
    coordinator.start(begun)
    return coordinator
  }

  /** A run that is held here already keeps what it was given: a caller with another order must not lend it anything. */
  #beginOnce(
    runId: RunId,
    begun: BegunRun,
    { order, ...given }: GivenToRun & { readonly order: KeyedOrder },
  ): StartedRun {
    const held = this.coordinators.coordinatorOf(runId)
    const same = held.joined(order)
    if (same) return { coordinator: held, same }
    const coordinator = this.coordinators.coordinatorFor(runId, given)
    coordinator.startOnce(begun, order)
    return { coordinator }
  }

  /** Starts a run when the one before it in its session has ended. A failure is reported: no caller waits for it. */
  startLater(...[agent, input, options]: Parameters<RuntimeRuns['start']>): void {
    try {
      this.start(agent, input, { ...options, whenBusy: 'wait' })
    } catch (error) {
      this.#parts.host.report(error, `The next run of session ${options.sessionId} could not begin`)
    }
  }

  fork(source: string, options: InContext<ForkOptions>): RunCoordinator {
    this.coordinators.requireOpen()
    const { ledger, agents, newId } = this.#parts
    const runId = newId()
    const coordinator = this.coordinators.coordinatorOf(runId, options.agent && agents.priced(options.agent))
    coordinator.setContext(options.context)
    const own = { ...options, ...omitUndefined({ edit: deepFreeze(options.edit) }) }
    coordinator.fork(() => forkOf(ledger, { source, runId }, own))
    return coordinator
  }

  /** The answer to a caller, who may not wait for it. */
  answer<T>(verb: string, runId: string, ask: () => Promise<T>): Promise<T> {
    const { report } = this.#parts.host
    return answerTo(ask(), (error) => report(error, unreadAnswer(verb, runId)))
  }

  interrupted(): ReturnType<typeof interruptedRuns> {
    return interruptedRuns(this.waiting)
  }

  handle<Output>({ coordinator, same }: StartedRun, agent?: Agent<Output>): Run<Output> {
    return runOf({ coordinator, agent, same }, new HandleSource(coordinator, this.coordinators, this.#parts))
  }
}
