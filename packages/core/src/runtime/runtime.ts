import { placeFault } from '../values/schema.ts'
import type { Agent } from '../agent/agent.ts'
import { listHooks } from '../agent/hooks.ts'
import { type AgentRegistry, createAgentRegistry, KnownModels } from '../agent/registry.ts'
import { pickRules } from '../agent/run-rules.ts'
import { outsideCommand, type OutsideCommand } from '../events/commands.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { requireTextId } from '../ledger/queries.ts'
import { digestTextsByDefault } from '../values/digest.ts'
import { ConfigurationError } from '../values/errors.ts'
import { findHostDigest, createUniqueName } from '../values/host.ts'
import { omitUndefined } from '../values/json.ts'
import { anyText, numberFrom, filledText, requireOptions } from '../values/option.ts'
import { createDuplicateSendError, describeUnreadAnswer } from './commands.ts'
import {
  appendToSession,
  branchOptions,
  branchSession,
  takeFromSession,
  sessionEditOptions,
  withdrawFromSession,
} from './edit-session.ts'
import { driveOptions, driveRun, isObeyed, postCommand, postOptions, requireNoWait } from './drive.ts'
import { readInterruptedRuns, readSuspendedRuns } from './follow-run.ts'
import { findFeedbackFault, recordFeedback } from './feedback.ts'
import type { ForkOptions } from './fork.ts'
import { checkHost, createRunIdMaker } from './host.ts'
import { joinRun } from './join-run.ts'
import { HeldLeases } from './leases.ts'
import { RunRegistry, type StartedRun } from './run-registry.ts'
import { refuseMalformedCommand, type Run, createRun } from './run.ts'
import {
  feedbackOptions,
  forkOptions,
  type InContext,
  noOptions,
  requireRunOptions,
  resumeOptions,
  type ResumeOptions,
  runtimeOptions,
  type Runtime,
  type RuntimeOptions,
  type RuntimeSession,
  sendOptions,
  sessionRunOptions,
  type SessionRunOptions,
  settledResult,
  type SettledResult,
  settleOptions,
} from './runtime-options.ts'
import { readSchedules, setSchedule } from './schedules.ts'
import { signalRuns } from './signals.ts'
import { createSessionView, toHistory } from './session.ts'
import { parseInput, type RunInput } from './start-run.ts'

const agentsOf = new WeakMap<Runtime, AgentRegistry>()

/** An agent as a runtime drives it, with its rules and prices; `undefined` if the runtime knows none of that name. */
export function findDrivenAgent(runtime: Runtime, name: string): Agent<unknown> | undefined {
  return agentsOf.get(runtime)?.find(name)
}

/** Creates a runtime: the ledger, agents and hooks that runs share. */
export function createRuntime(options: RuntimeOptions): Runtime {
  requireOptions('createRuntime', runtimeOptions, options)
  digestTextsByDefault(findHostDigest)
  const { ledger } = options
  const runs = createRegistry(options)
  const runtime: Runtime = {
    ledger,
    run(agent, input, ...[own = {}]) {
      requireRunOptions(own)
      const { driver, same } = runs.start(agent, input, own)
      return createRun(driver, { same })
    },
    session: (id) => createRuntimeSession(id, ledger, runs),
    resume<Output>(runId: string, own: ResumeOptions<Output> = {}) {
      requireTextId('resume', runId)
      requireOptions('resume', resumeOptions, own)
      const driver = runs.driverFor(runId, { ...own, rules: pickRules(own) })
      if (own.takeOver) driver.takesOver = true
      driver.drive({ withChildren: true })
      return createRun(driver, { agent: own.agent })
    },
    fork<Output>(source: string, own: InContext<ForkOptions>) {
      requireOptions('fork', forkOptions, own)
      return createRun<Output>(runs.fork(source, own))
    },
    send: (runId, command, own = {}) =>
      runs.answer(describeUnreadAnswer('send', runId), async () => {
        requireTextId('send', runId)
        requireOptions('send', sendOptions, own)
        const { key, context } = own
        const fault = placeFault('the command', outsideCommand(command))
        if (fault) return refuseMalformedCommand('send', fault)
        const driver = runs.driverFor(runId, { context })
        const answer = await driver.send(command, key)
        if (
          key !== undefined &&
          !answer.accepted &&
          (await isObeyed(driver.ledger, driver.runId, command, key))
        )
          throw createDuplicateSendError(driver.runId, key)
        return answer
      }),
    settle: (runId, toolCallId, result, own = {}) =>
      runs.answer(describeUnreadAnswer('settle', runId), async () => {
        requireOptions('settle', anyText, runId, 'the run id')
        requireOptions('settle', anyText, toolCallId, 'the tool call id')
        requireOptions('settle', settledResult, result, 'the result')
        requireOptions('settle', settleOptions, own)
        const { by, reason } = own
        return await runs
          .driverFor(runId, { ...own, rules: pickRules(own) })
          .send({ type: 'settle', toolCallId, ...toSettlement(result), ...omitUndefined({ by, reason }) })
      }),
    feedback: (runId, feedback, own = {}) =>
      runs.answer(describeUnreadAnswer('feedback', runId), async () => {
        requireTextId('feedback', runId)
        requireOptions('feedback', feedbackOptions, own)
        const fault = findFeedbackFault(feedback)
        if (fault) return refuseMalformedCommand('feedback', fault)
        return await recordFeedback(runs.parts, runId, feedback, own.key)
      }),
    drive: (runId, own = {}) =>
      runs.answer(describeUnreadAnswer('drive', runId), async () => {
        requireTextId('drive', runId)
        requireOptions('drive', driveOptions, own)
        return await driveRun(runs, runId, own)
      }),
    post: (runId, command, own) =>
      runs.answer(describeUnreadAnswer('post', runId), async () => {
        requireTextId('post', runId)
        requireOptions('post', postOptions, own)
        return await postCommand(runs.parts, runId, command, own)
      }),
    enqueue: (agent, input, ...[own = {}]) =>
      runs.answer('A run was not enqueued, and nobody waited for it', async () => {
        requireRunOptions(own)
        requireNoWait('enqueue', own.whenBusy)
        const { driver, same } = runs.start(agent, input, own, { isQueued: true })
        await same
        await driver.result
        return driver.runId
      }),
    schedule: (agent, own) =>
      runs.answer('A schedule was not set, and nobody waited for it', () => setSchedule(runs, agent, own)),
    signal: (name, payload, own = {}) =>
      runs.answer(`The event ${name} was not sent, and nobody waited for it`, () =>
        signalRuns(runs, name, payload, own),
      ),
    schedules(...given: readonly unknown[]) {
      requireOptions('schedules', noOptions, given[0])
      return readSchedules(ledger)
    },
    suspended(...given: readonly unknown[]) {
      requireOptions('suspended', noOptions, given[0])
      return readSuspendedRuns(ledger)
    },
    interrupted(...given: readonly unknown[]) {
      requireOptions('interrupted', noOptions, given[0])
      return readInterruptedRuns(runs.parts)
    },
    drain: (graceMs) =>
      runs.answer('The runtime was not drained, and nobody waited for it', async () => {
        if (graceMs !== undefined) requireOptions('drain', numberFrom(0), graceMs, 'graceMs')
        return await runs.drain(graceMs)
      }),
    idle: () => runs.idle(),
  }
  agentsOf.set(runtime, runs.parts.agents)
  return runtime
}

/** The registry of a runtime: its parts as its options say, and no runs yet. */
function createRegistry({
  ledger,
  agents: known = [],
  prices = {},
  onDrift,
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
}: RuntimeOptions): RunRegistry {
  const host = checkHost(own)
  const agents = createAgentRegistry(prices, rules)
  for (const agent of known) agents.register(agent)
  const models = new KnownModels(agents, given)
  if (model) models.add(model)
  const defaults = {
    ...omitUndefined({ model, modelSettings, limits, recording }),
    hooks: listHooks(hooks),
  }
  return new RunRegistry({
    ledger,
    host,
    leases: new HeldLeases(ledger, host, createUniqueName()),
    agents,
    models,
    defaults,
    onDrift,
    passesLiveText: liveText,
    ...omitUndefined({ contextOf }),
    newId: createRunIdMaker(host),
  })
}

function toSettlement(
  result: SettledResult,
): Pick<Extract<OutsideCommand, { type: 'settle' }>, 'outcome' | 'content'> {
  if (typeof result === 'string') return { outcome: 'success', content: [{ type: 'text', text: result }] }
  if ('failed' in result) return { outcome: 'failed', content: [{ type: 'text', text: result.failed }] }
  return { outcome: 'success', content: result }
}

/** Returns a session of a runtime, which starts its runs. Throws a `ConfigurationError` for a name that is empty or not a text. */
function createRuntimeSession(id: string, ledger: Ledger, runs: RunRegistry): RuntimeSession {
  if (typeof id !== 'string' || id === '' || !id.isWellFormed() || id.includes('\0')) {
    throw new ConfigurationError(
      'A session needs a name: a text that is not empty, with no NUL and no half of a surrogate pair, such as a conversation id.',
    )
  }
  const run = async (
    agent: Agent<unknown>,
    input: RunInput,
    given: InContext<SessionRunOptions>,
  ): Promise<StartedRun> => {
    requireOptions('session(…).run', sessionRunOptions, given)
    const { whenBusy = 'conflict', ...options } = given
    runs.requireOpen()
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
      const joined = await joinRun(runs, id, joining)
      if (joined) return { driver: joined }
      const started = runs.start(agent, input, { ...options, sessionId: id })
      if (await started.driver.hasBegun()) return started
    }
  }
  const view = createSessionView(ledger, id)
  return {
    ...view,
    history: () =>
      runs.answer(`The history of session ${id} could not be read, and nobody waited for it`, () =>
        view.history(),
      ),
    append: (messages, own = {}) =>
      runs.answer(`Nothing is known to have been added to session ${id}`, async () => {
        requireOptions('session(…).append', sessionEditOptions, own)
        const state = await appendToSession(runs, id, messages, own)
        return state ? toHistory(state) : await view.history()
      }),
    pop: (own = {}) =>
      runs.answer(`Nothing is known to have been taken from session ${id}`, async () => {
        requireOptions('session(…).pop', sessionEditOptions, own)
        return await takeFromSession(runs, [id, 'pop'], own)
      }),
    clear: (own = {}) =>
      runs.answer(`Session ${id} is not known to have been cleared`, async () => {
        requireOptions('session(…).clear', sessionEditOptions, own)
        return await takeFromSession(runs, [id, 'clear'], own)
      }),
    withdraw: (toolCallId, own) =>
      runs.answer(
        `The approval ${toolCallId} of session ${id} is not known to have been withdrawn`,
        async () => {
          requireOptions('session(…).withdraw', filledText, toolCallId, 'the tool call id')
          requireOptions('session(…).withdraw', sessionEditOptions, own)
          return await withdrawFromSession(runs, [id, toolCallId], own)
        },
      ),
    branch: (branchId, own = {}) =>
      runs.answer(`Session ${id} is not known to have been branched`, async () => {
        requireOptions('session(…).branch', branchOptions, own)
        const branch = createRuntimeSession(branchId, ledger, runs)
        await branchSession(runs, [id, branchId], own)
        return branch
      }),
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
