import { faultIn } from '../values/schema.ts'
import type { Agent } from '../agent/agent.ts'
import { hookListOf } from '../agent/hooks.ts'
import { ContextOfRecord, recordedRun } from '../agent/prepare-turn.ts'
import { agentRegistry, KnownModels } from '../agent/registry.ts'
import { outsideCommand, type OutsideCommand, type StartCommand } from '../events/commands.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { requireTextId } from '../ledger/queries.ts'
import { digestTextsByDefault } from '../values/digest.ts'
import { ConfigurationError } from '../values/errors.ts'
import { digestOfHost, uniqueName } from '../values/host.ts'
import { type RunId, runIdOfKey } from '../values/ids.ts'
import { deepFreeze, omitUndefined } from '../values/json.ts'
import { numberFrom, requireOptions } from '../values/option.ts'
import { answerTo, unreadAnswer } from './commands.ts'
import { requireRemovable } from './ended-content.ts'
import { interruptedRuns, suspendedRuns } from './follow-run.ts'
import { buildFork, type ForkOptions } from './fork.ts'
import { checkedHost, runIdMaker } from './host.ts'
import { joinRun } from './join-run.ts'
import { HeldLeases } from './leases.ts'
import type { RunDriver } from './run-driver.ts'
import { type GivenToRun, RunRegistry } from './run-registry.ts'
import { malformed, type Run, createRun } from './run.ts'
import {
  cancelCommandOf,
  cancelWith,
  type InContext,
  noOptions,
  requireForkOptions,
  requireResumeOptions,
  requireRunOptions,
  requireRuntimeOptions,
  requireSendOptions,
  requireSessionRunOptions,
  requireSettling,
  type ResumeOptions,
  type RunOptions,
  type Runtime,
  type RuntimeOptions,
  type RuntimeSession,
  type SessionRunOptions,
  type SettledResult,
} from './runtime-options.ts'
import type { BegunRun, ReadyStart, RuntimeParts } from './runtime-parts.ts'
import { KnownEnds, readPast, sessionView } from './session.ts'
import {
  resolveOptions,
  parseInput,
  type KeyedOrder,
  type RunInput,
  startCommand,
  withDefaults,
  withGiven,
} from './start-run.ts'

/** Creates a runtime: the ledger, agents and hooks that runs share. */
export function createRuntime(options: RuntimeOptions): Runtime {
  requireRuntimeOptions(options)
  digestTextsByDefault(digestOfHost)
  const { ledger } = options
  const runs = new RuntimeRuns(options)
  const { registry } = runs
  return {
    ledger,
    run(agent, input, ...[own = {}]) {
      requireRunOptions(own)
      const { driver, same } = runs.start(agent, input, own)
      return createRun(driver, { same })
    },
    session: (id) => runtimeSession(id, ledger, runs),
    resume<Output>(runId: string, own: ResumeOptions<Output> = {}) {
      requireTextId('resume', runId)
      requireResumeOptions(own)
      const driver = registry.driverFor(runId, own)
      if (own.takeOver) driver.takesOver = true
      driver.drive({ withChildren: true })
      return createRun(driver, { agent: own.agent })
    },
    fork<Output>(source: string, own: InContext<ForkOptions>) {
      requireForkOptions(own)
      return createRun<Output>(runs.fork(source, own))
    },
    send: (runId, command, own = {}) =>
      runs.answer(unreadAnswer('send', runId), async () => {
        requireTextId('send', runId)
        requireSendOptions(own)
        const { key, context } = own
        const fault = faultIn('the command', outsideCommand(command))
        if (fault) return malformed('send', fault)
        return await registry.driverFor(runId, { context }).send(command, key)
      }),
    settle: (runId, toolCallId, result, own = {}) =>
      runs.answer(unreadAnswer('settle', runId), async () => {
        requireSettling(runId, toolCallId, result, own)
        const { by, reason } = own
        return await registry
          .driverFor(runId, own)
          .send({ type: 'settle', toolCallId, ...settledResult(result), ...omitUndefined({ by, reason }) })
      }),
    suspended(...given: readonly unknown[]) {
      requireOptions('suspended', noOptions, given[0])
      return suspendedRuns(ledger)
    },
    interrupted(...given: readonly unknown[]) {
      requireOptions('interrupted', noOptions, given[0])
      return interruptedRuns(registry.parts)
    },
    drain: (graceMs) =>
      runs.answer('The runtime was not drained, and nobody waited for it', async () => {
        if (graceMs !== undefined) requireOptions('drain', numberFrom(0), graceMs, 'graceMs')
        return await registry.drain(graceMs)
      }),
    idle: () => registry.idle(),
  }
}

function settledResult(
  result: SettledResult,
): Pick<Extract<OutsideCommand, { type: 'settle' }>, 'outcome' | 'content'> {
  if (typeof result === 'string') return { outcome: 'success', content: [{ type: 'text', text: result }] }
  if ('failed' in result) return { outcome: 'failed', content: [{ type: 'text', text: result.failed }] }
  return { outcome: 'success', content: result }
}

/** A run that was asked for, as this process holds it. */
export interface StartedRun {
  readonly driver: RunDriver
  /** For a run that was there: rejects where another order began it under the key. */
  readonly same?: Promise<void>
}

/** The runs of a runtime: starts, forks and finds them, and makes their handles. */
class RuntimeRuns {
  readonly registry: RunRegistry
  readonly parts: RuntimeParts

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
    liveText = false,
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
    this.registry = new RunRegistry({
      ledger,
      host,
      leases: new HeldLeases(ledger, host, uniqueName()),
      agents,
      models,
      defaults,
      onDrift,
      passesLiveText: liveText,
      ...omitUndefined({ contextOf }),
      newId: runIdMaker(host),
      ends: new KnownEnds(),
    })
    this.parts = this.registry.parts
  }

  start(agent: Agent<unknown>, input: RunInput, options: InContext<RunOptions>): StartedRun {
    const { agents, newId, ledger, defaults } = this.parts
    const { register } = agents
    const { limits, whenBusy, subject, context, idempotencyKey, signal, model, hooks } = options
    const runId = idempotencyKey === undefined ? newId() : runIdOfKey(idempotencyKey)
    const given = resolveOptions(register(agent), withDefaults(options, defaults), agents)
    requireRemovable(register(agent), given.recording, ledger)
    const { message, before } = parseInput(input)
    const commandIn = (made: unknown): StartCommand => {
      const own = { ...omitUndefined({ limits, defaults: defaults.limits }), given, register, context: made }
      return deepFreeze(startCommand(runId, register(agent), message, own))
    }
    // A context that is made of the record comes later, when it is known what that will say.
    const command = context instanceof ContextOfRecord ? undefined : commandIn(context)
    const { sessionId, from, edit, mayFollow, inputId } = options
    const past = deepFreeze(omitUndefined({ sessionId, from, edit, whenBusy, mayFollow }))
    const prepare = async (): Promise<ReadyStart> => {
      const { subject: inherited, ...found } = withGiven(await readPast(this.parts, past), before)
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
        ? { driver: this.#begin(runId, begun, started) }
        : this.#beginOnce(runId, begun, { ...started, order })
    if (signal) cancelWith(signal, run.driver)
    return run
  }

  #begin(runId: RunId, begun: BegunRun, given: GivenToRun): RunDriver {
    const driver = this.registry.driverFor(runId, given)
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
    const held = this.registry.driverOf(runId)
    const same = held.joined(order)
    if (same) return { driver: held, same }
    const driver = this.registry.driverFor(runId, given)
    driver.startOnce(begun, order)
    return { driver }
  }

  /** Starts a run when the one before it in its session has ended. A failure is reported: no caller waits for it. */
  startLater(...[agent, input, options]: Parameters<RuntimeRuns['start']>): void {
    try {
      this.start(agent, input, { ...options, whenBusy: 'wait' })
    } catch (error) {
      this.parts.host.report(error, `The next run of session ${options.sessionId} could not begin`)
    }
  }

  fork(source: string, options: InContext<ForkOptions>): RunDriver {
    this.registry.requireOpen()
    const { ledger, agents, newId } = this.parts
    const runId = newId()
    const driver = this.registry.driverOf(runId, options.agent && agents.priced(options.agent))
    driver.give({ context: options.context, model: undefined, hooks: [] })
    const own = { ...options, ...omitUndefined({ edit: deepFreeze(options.edit) }) }
    driver.fork(() => buildFork(ledger, { source, runId }, own))
    return driver
  }

  /** The answer to a caller, who may not wait for it. */
  answer<T>(unread: string, ask: () => Promise<T>): Promise<T> {
    const { report } = this.parts.host
    return answerTo(ask(), (error) => report(error, unread))
  }
}

/** Returns a session of a runtime, which starts its runs. Throws a `ConfigurationError` for a name that is empty or not a text. */
function runtimeSession(id: string, ledger: Ledger, runs: RuntimeRuns): RuntimeSession {
  if (typeof id !== 'string' || id === '' || !id.isWellFormed() || id.includes('\0')) {
    throw new ConfigurationError(
      'A session needs a name: a text that is not empty, such as a conversation id.',
    )
  }
  const run = async (
    agent: Agent<unknown>,
    input: RunInput,
    given: InContext<SessionRunOptions>,
  ): Promise<StartedRun> => {
    requireSessionRunOptions(given)
    const { whenBusy = 'conflict', ...options } = given
    runs.registry.requireOpen()
    if (whenBusy !== 'join') return runs.start(agent, input, { ...options, sessionId: id, whenBusy })
    const { message, before } = parseInput(input)
    if (before.length > 0) {
      throw new ConfigurationError(
        `Only one message can join a run of session ${id}, and ${before.length + 1} were given: the run has its own past. Give the last one alone, or another whenBusy.`,
      )
    }
    for (;;) {
      const beginNext = (): void => runs.startLater(agent, input, { ...options, sessionId: id })
      const { inputId, mayFollow } = given
      const joining = { message, inputId, mayFollow, beginNext }
      const joined = await joinRun(runs.registry, id, joining)
      if (joined) return { driver: joined }
      const started = runs.start(agent, input, { ...options, sessionId: id })
      if (await started.driver.hasBegun()) return started
    }
  }
  const view = sessionView(ledger, id)
  return {
    ...view,
    history: () =>
      runs.answer(`The history of session ${id} could not be read, and nobody waited for it`, () =>
        view.history(),
      ),
    run<Output, Context>(
      agent: Agent<Output, Context>,
      input: RunInput,
      ...[given = {}]: readonly (InContext<SessionRunOptions> | undefined)[]
    ): Promise<Run<Output>> {
      const unread = `No run of session ${id} took its input, and nobody waited for the answer`
      return runs.answer(unread, async () => {
        const { driver, same } = await run(agent, input, given)
        return createRun<Output>(driver, { same })
      })
    },
  }
}
