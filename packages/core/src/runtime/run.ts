import type { Observable } from 'rxjs'
import type { Agent } from '../agent/agent.ts'
import { reachableAgents } from '../agent/registry.ts'
import type { UserPart } from '../events/content.ts'
import type { LimitName } from '../events/limits.ts'
import { ConfigurationError } from '../values/errors.ts'
import type { RunId } from '../values/ids.ts'
import { type JsonObject, omitUndefined } from '../values/json.ts'
import { numberFrom, type Fault, faultIn, requireOptions } from '../values/option.ts'
import {
  cancelFault,
  decisionFault,
  type Question,
  raiseFault,
  type ShownApproval,
  ShownApprovals,
} from './shown-approvals.ts'
import type { CommandAcknowledgement } from './commands.ts'
import type { RunDriver } from './run-driver.ts'
import type { RunResult } from './run-result.ts'
import { type RunStep, readSteps } from './run-steps.ts'
import {
  iterateEvents,
  lateFields,
  type LiveText,
  type RunStreams,
  RunViews,
  streamLiveText,
  streamsOf,
} from './run-streams.ts'
import { noOptions } from './runtime-options.ts'
import { toUserMessage } from './start-run.ts'

/**
 * The handle of a run, for the caller that started or resumed it. Streams are views of the ledger: every subscriber
 * gets all of it, from the first event, however late it subscribes. Commands go through the ledger's inbox and return
 * whether the run accepted them; they never throw for a command that the run does not allow. Once the run's writer
 * has failed (another process took the run over, the ledger cannot be written) they reject with that failure:
 * `resume` makes a new handle.
 */
export interface Run<Output = unknown> extends RunStreams {
  readonly id: RunId
  /**
   * The same views, starting after the event with this number, such as `result.seq` of the last result. If the run
   * has no event with that number, the streams error.
   */
  after(seq: number): RunStreams
  /**
   * The model's text as this process gets it, before it is on record: without `seq`, and without text that another process gets.
   * No other view waits for it. Errors unless the runtime was created with `liveText`; ends with the run.
   */
  readonly liveText$: Observable<LiveText>
  /**
   * The result of the run when it stops: done, or suspended. After a command that lets a suspended run continue, the
   * result of the next stop. Rejects only if the ledger or the caller's own code is at fault.
   */
  readonly result: Promise<RunResult<Output>>
  /**
   * Approves a call that waits for an approval: a call of this run, or of a child run. Takes the pending approval
   * that was shown, or the call's id. If `input` changes the call's input, the call's tool checks it, if this process
   * knows the tool: an input that does not fit is refused as `invalid_input`, and the call still waits. The model
   * reads the change before the result.
   *
   * A decision answers one question. A pending approval names it by `attempt` and `inputDigest`. An id alone names
   * the question that a result or `events$` of this handle has shown last, or the first start of the call if the
   * handle has shown none. If the call waits for an answer about another start or input by then, the decision is
   * refused as `not_awaiting_approval`: a late duplicate decides nothing.
   *
   * The acknowledgement comes before the call has run. Await `result`, or `runtime.idle()`, before you close the ledger.
   */
  approve(
    call: string | ShownApproval,
    decision: {
      readonly by: string
      readonly reason?: string | undefined
      /** How the decision was made, for the record. */
      readonly via?: string | undefined
      readonly input?: JsonObject | undefined
    } & Question,
  ): Promise<CommandAcknowledgement>
  /** Refuses a call that waits for an approval, named as for `approve`. The reason reaches the model. */
  deny(
    call: string | ShownApproval,
    decision: { readonly by: string; readonly via?: string | undefined; readonly reason: string } & Question,
  ): Promise<CommandAcknowledgement>
  /** The turns of the run so far: what each asked, called and used, and how long it took. Read from the ledger. */
  steps(): Promise<readonly RunStep[]>
  /** Adds a message to the run's next turn. The event `input_settled` records where, or why not. */
  steer(input: string | readonly UserPart[]): Promise<CommandAcknowledgement>
  /** Adds a message after the answer. The event `input_settled` records where, or why not. */
  queue(input: string | readonly UserPart[]): Promise<CommandAcknowledgement>
  /** Raises a limit; a run that is suspended at it continues. */
  raiseLimit(
    limit: LimitName,
    max: number,
    decision: { readonly by: string; readonly reason?: string | undefined },
  ): Promise<CommandAcknowledgement>
  /** Stops the run; finished work stays on record. A text is the reason. */
  cancel(
    decision?: string | { readonly by?: string | undefined; readonly reason?: string | undefined },
  ): Promise<CommandAcknowledgement>
}

/** Refuses the result of a run that another agent began: its output would be of another type. */
function requireRunOf<Output>(agent: Agent<Output>, result: RunResult<Output>): RunResult<Output> {
  if (reachableAgents(agent).some(({ name }) => name === result.agent)) return result
  throw new ConfigurationError(
    `Run ${result.runId} is a run of the agent ${result.agent}, and ${agent.name} was given to read its result. Give the agent that it was started with, or none.`,
  )
}

/** The acknowledgement of an incomplete or impossible command: nothing was sent. */
export function malformed(command: string, { path, what }: Fault): CommandAcknowledgement {
  const message = `${command}: ${path === '' ? 'what it was given' : path} ${what}. Nothing was sent.`
  return { accepted: false, code: 'malformed', message }
}

/** The parts of a handle that are made on first use. */
class HandleViews<Output> extends RunViews {
  readonly #driver: RunDriver
  readonly #agent: Agent<Output> | undefined
  readonly #same: Promise<void> | undefined
  readonly #shown: ShownApprovals
  #liveText$: Observable<LiveText> | undefined

  constructor({ driver, agent, same }: HeldBy<Output>, shown: ShownApprovals) {
    super(driver, 0, shown)
    this.#driver = driver
    this.#agent = agent
    this.#same = same
    same?.catch(() => {})
    this.#shown = shown
  }

  liveText$(): Observable<LiveText> {
    return (this.#liveText$ ??= streamLiveText(this.#driver, this.events$))
  }

  result(): Promise<RunResult<Output>> {
    // What a run of this agent answers, its schema has made.
    const stopped = this.#driver.result as Promise<RunResult<Output>>
    const result = this.#same ? this.#same.then(() => stopped) : stopped
    this.#shown.resultOf(result)
    const agent = this.#agent
    const shown = agent === undefined ? result : result.then((ended) => requireRunOf(agent, ended))
    // Whoever asks for the result may read it later, or never.
    shown.catch(() => {})
    return shown
  }
}

const begun = new WeakMap<object, () => Promise<unknown>>()

/**
 * Resolves when the run of a handle is on record, as its caller asked for it: rejects where the idempotency key began
 * something else, which the events of that run do not tell.
 */
export async function untilBegun(run: Pick<Run, 'id'>): Promise<void> {
  await begun.get(run)?.()
}

interface HeldBy<Output> {
  readonly driver: RunDriver
  readonly agent: Agent<Output> | undefined
  /** Rejects where the run is not the one that the caller asked for. */
  readonly same: Promise<void> | undefined
}

/** A handle of the run that a driver holds. */
export function createRun<Output>(held: HeldBy<Output>): Run<Output> {
  const { driver } = held
  const shown = new ShownApprovals()
  const views = new HandleViews(held, shown)
  const iterate = (): ReturnType<Run[typeof Symbol.asyncIterator]> =>
    iterateEvents(views.events$, driver.result, 0)
  const handle: Omit<Run<Output>, keyof LateFields> = {
    id: driver.runId,
    events$: views.events$,
    [Symbol.asyncIterator]: iterate,
    after(seq) {
      requireOptions('run.after', numberFrom(0, { whole: true }), seq, 'seq')
      const later = new RunViews(driver, seq, shown)
      return streamsOf(later, () => iterateEvents(later.events$, driver.result, seq))
    },
    approve: (call, decision) =>
      driver.answer('approve', async () => {
        const fault = decisionFault('approve', call, decision)
        if (fault) return malformed('approve', fault)
        const { by, via, input, reason } = decision
        return await driver.send({
          type: 'approve',
          ...shown.answered(call, decision),
          by,
          ...omitUndefined({ via, input, reason }),
        })
      }),
    deny: (call, decision) =>
      driver.answer('deny', async () => {
        const fault = decisionFault('deny', call, decision)
        if (fault) return malformed('deny', fault)
        const { by, via, reason } = decision
        return await driver.send({
          type: 'deny',
          ...shown.answered(call, decision),
          by,
          ...omitUndefined({ via }),
          reason,
        })
      }),
    steps: () => driver.answer('steps', () => readSteps(driver.ledger, driver.runId)),
    steer: (...given) => sendInput(driver, 'steer', given),
    queue: (...given) => sendInput(driver, 'queue', given),
    raiseLimit: (limit, max, decision) =>
      driver.answer('raiseLimit', async () => {
        const fault = raiseFault(limit, max, decision)
        if (fault) return malformed('raiseLimit', fault)
        const { by, reason } = decision
        return await driver.send({ type: 'raise_limit', limit, max, by, ...omitUndefined({ reason }) })
      }),
    cancel: (decision = {}) =>
      driver.answer('cancel', async () => {
        const given = typeof decision === 'string' ? { reason: decision } : decision
        const fault = cancelFault(given)
        if (fault) return malformed('cancel', fault)
        const { by, reason } = given
        return await driver.send({ type: 'cancel', ...omitUndefined({ by, reason }) })
      }),
  }
  const run = withLateFields(handle, views) as Run<Output>
  begun.set(run, () => held.same ?? driver.created)
  return run
}

function sendInput(
  driver: RunDriver,
  type: 'steer' | 'queue',
  [input, ...more]: readonly [string | readonly UserPart[], ...unknown[]],
): Promise<CommandAcknowledgement> {
  const message = toUserMessage(input)
  const fault = faultIn('what follows the input', noOptions(more[0]))
  if (fault) return Promise.resolve(malformed(type, fault))
  const command = { type, message, receipt: driver.parts.newId() }
  return driver.answer(type, () => driver.send(command))
}

type LateFields = Pick<Run, 'state$' | 'text$' | 'textUpdates$' | 'liveText$' | 'result'>

const withLateFields = lateFields<LateFields>(['state$', 'text$', 'textUpdates$', 'liveText$', 'result'])
