import type { Observable } from 'rxjs'
import { type Agent, limitChecks, limitName } from '../agent/agent.ts'
import { listReachableAgents } from '../agent/registry.ts'
import type { OutsideCommand } from '../events/commands.ts'
import type { UserPart } from '../events/content.ts'
import { type RuntimeEvent, type StandingOptions, standingScopes } from '../events/event.ts'
import type { LimitName } from '../events/limits.ts'
import type { PendingApproval } from '../machine/calls.ts'
import { toShownEvent } from '../models/output.ts'
import { ConfigurationError } from '../values/errors.ts'
import { type RunId, extractRunId } from '../values/ids.ts'
import { type JsonObject, omitUndefined, type OrUndefined } from '../values/json.ts'
import {
  anyObject,
  anyText,
  type Fault,
  placeFault,
  fields,
  filledText,
  listOf,
  longTime,
  maybe,
  numberFrom,
  oneOf,
  type Schema,
  requireOptions,
} from '../values/option.ts'
import type { CommandAcknowledgement } from './commands.ts'
import { type Feedback, findFeedbackFault, recordFeedback } from './feedback.ts'
import type { RunDriver } from './run-driver.ts'
import type { RunResult } from './run-result.ts'
import { readSteps, type RunStep } from './run-steps.ts'
import { createStreams, type LiveText, type RunStreams, streamLiveText } from './run-streams.ts'
import { noOptions } from './runtime-options.ts'
import { toUserMessage } from './start-run.ts'

/**
 * The handle of a run, for the caller that started or resumed it. Streams are views of the ledger: every subscriber
 * gets all of it, from the first event, however late it subscribes. Commands go through the ledger's inbox and return
 * whether the run accepted them; they never throw for a command that the run does not allow. Once the run's writer
 * has failed (another process took the run over, the ledger cannot be written) they reject with that failure:
 * `resume` makes a new handle.
 */
export interface Run<Output = unknown> extends RunStreams<Output> {
  readonly id: RunId
  /**
   * The same views, starting after the event with this number, such as `result.seq` of the last result. If the run
   * has no event with that number, the streams error.
   */
  after(seq: number): RunStreams<Output>
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
      /** The roles of the person, as the application knows them: a call may need an approver with one of some roles. */
      readonly roles?: readonly string[] | undefined
      /**
       * The approval also covers later calls of the tool: `session` all of them, `equal_input` those with this input, in this run and
       * later ones of its session, for so many milliseconds. `withdraw` ends it.
       */
      readonly standing?: StandingOptions | undefined
    } & Question,
  ): Promise<CommandAcknowledgement>
  /** Refuses a call that waits for an approval, named as for `approve`. The reason reaches the model. */
  deny(
    call: string | ShownApproval,
    decision: {
      readonly by: string
      readonly via?: string | undefined
      readonly reason: string
      readonly roles?: readonly string[] | undefined
    } & Question,
  ): Promise<CommandAcknowledgement>
  /** Ends a standing approval, which is known by the id of the call that was approved. What it let run, it has let run. */
  withdraw(
    toolCallId: string,
    decision: { readonly by: string; readonly reason?: string | undefined },
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
  /** Records what someone says of the run after its end. Refused as `not_finished` before. No model reads it. */
  feedback(feedback: Feedback): Promise<CommandAcknowledgement>
}

/** Refuses the result of a run that another agent began: its output would be of another type. */
function requireAgentsRun<Output>(agent: Agent<Output>, result: RunResult<Output>): RunResult<Output> {
  if (listReachableAgents(agent).some(({ name }) => name === result.agent)) return result
  throw new ConfigurationError(
    `Run ${result.runId} is a run of the agent ${result.agent}, and ${agent.name} was given to read its result. Give the agent that it was started with, or none.`,
  )
}

/** The acknowledgement of an incomplete or impossible command: nothing was sent. */
export function refuseMalformedCommand(command: string, { path, what }: Fault): CommandAcknowledgement {
  const message = `${command}: ${path === '' ? 'what it was given' : path} ${what}. Nothing was sent.`
  return { accepted: false, code: 'malformed', message }
}

const begun = new WeakMap<object, () => Promise<unknown>>()

/**
 * Resolves when the run of a handle is on record, as its caller asked for it: rejects if the idempotency key began
 * something else, which the events of that run do not tell.
 */
export async function waitUntilBegun(run: Pick<Run, 'id'>): Promise<void> {
  await begun.get(run)?.()
}

/** A handle of the run that a driver holds. `same` rejects if the run is not the one that the caller asked for. */
export function createRun<Output>(
  driver: RunDriver,
  {
    agent,
    same,
  }: { readonly agent?: Agent<Output> | undefined; readonly same?: Promise<void> | undefined } = {},
): Run<Output> {
  same?.catch(() => {})
  const shown = new ShownApprovals()
  const show = (event: RuntimeEvent): RuntimeEvent => {
    shown.event(event)
    return toShownEvent(event)
  }
  const streams = createStreams<Output>(driver, 0, show)
  /** Sends what `toCommand` makes of a caller's decision, unless that has a fault. The caller may not wait for the answer. */
  const sendDecision = (
    verb: string,
    findFault: () => Fault | undefined,
    toCommand: () => OutsideCommand,
  ): Promise<CommandAcknowledgement> =>
    driver.answer(verb, async () => {
      const fault = findFault()
      return fault ? refuseMalformedCommand(verb, fault) : await driver.send(toCommand())
    })
  const sendInput = (
    type: 'steer' | 'queue',
    [input, ...more]: readonly [string | readonly UserPart[], ...unknown[]],
  ): Promise<CommandAcknowledgement> => {
    const message = toUserMessage(input)
    return sendDecision(
      type,
      () => placeFault('what follows the input', noOptions(more[0])),
      () => ({ type, message, receipt: driver.parts.newId() }),
    )
  }
  const run: Run<Output> = {
    id: driver.runId,
    ...streams,
    liveText$: streamLiveText(driver, streams.events$),
    after(seq) {
      requireOptions('run.after', numberFrom(0, { whole: true }), seq, 'seq')
      return createStreams(driver, seq, show)
    },
    get result() {
      // The schema of the agent has made the output of its run.
      const stopped = driver.result as Promise<RunResult<Output>>
      const result = same ? same.then(() => stopped) : stopped
      shown.takeResult(result)
      const checked = agent === undefined ? result : result.then((ended) => requireAgentsRun(agent, ended))
      // Whoever asks for the result may read it later, or never.
      checked.catch(() => {})
      return checked
    },
    approve: (call, decision) =>
      sendDecision(
        'approve',
        () => findDecisionFault('approve', call, decision),
        () => {
          const { by, via, input, reason, roles, standing } = decision
          const question = shown.answered(call, decision)
          const more = omitUndefined({ via, input, reason, roles, standing })
          return { type: 'approve', ...question, by, ...more }
        },
      ),
    deny: (call, decision) =>
      sendDecision(
        'deny',
        () => findDecisionFault('deny', call, decision),
        () => {
          const { by, via, reason, roles } = decision
          const question = shown.answered(call, decision)
          return { type: 'deny', ...question, by, ...omitUndefined({ via, roles }), reason }
        },
      ),
    withdraw: (standing, decision) =>
      sendDecision(
        'withdraw',
        () =>
          placeFault('the tool call id', filledText(standing)) ??
          placeFault('the decision', raising(decision)),
        () => {
          const { by, reason } = decision
          return { type: 'withdraw', standing, by, ...omitUndefined({ reason }) }
        },
      ),
    steps: () => driver.answer('steps', () => readSteps(driver.ledger, driver.runId)),
    steer: (...given) => sendInput('steer', given),
    queue: (...given) => sendInput('queue', given),
    raiseLimit: (limit, max, decision) =>
      sendDecision(
        'raiseLimit',
        () => raiseFault(limit, max, decision),
        () => {
          const { by, reason } = decision
          return { type: 'raise_limit', limit, max, by, ...omitUndefined({ reason }) }
        },
      ),
    cancel: (decision = {}) => {
      const given = typeof decision === 'string' ? { reason: decision } : decision
      return sendDecision(
        'cancel',
        () => cancelFault(given),
        () => ({ type: 'cancel', ...omitUndefined({ by: given.by, reason: given.reason }) }),
      )
    },
    feedback: (feedback) =>
      driver.answer('feedback', async () => {
        const fault = findFeedbackFault(feedback)
        if (fault) return refuseMalformedCommand('feedback', fault)
        await driver.created
        return await recordFeedback(driver.parts, driver.runId, feedback)
      }),
  }
  begun.set(run, () => same ?? driver.created)
  return run
}

/** A pending approval, or the part of one that identifies the question: which start of which call, with which input. */
export type ShownApproval = Pick<PendingApproval, 'toolCallId' | 'attempt' | 'inputDigest'>

/** Names the question that a decision answers. */
interface Question {
  readonly attempt?: number | undefined
  readonly inputDigest?: string | undefined
}

/**
 * The questions that one handle has shown, the last of each call. Two handles of one run may have shown different ones:
 * a decision through the older handle must not answer what only the newer one has shown.
 */
export class ShownApprovals {
  readonly #shown = new Map<string, ShownApproval>()

  /** Notes a result that the handle returns, before its reader gets it. */
  takeResult(result: Promise<RunResult>): void {
    result.then(
      ({ pendingApprovals }) => {
        for (const approval of pendingApprovals) this.#shown.set(approval.toolCallId, approval)
      },
      () => {},
    )
  }

  /** Notes an event that the handle emits. */
  event(event: RuntimeEvent): void {
    if (event.type === 'approval_requested') this.#shown.set(event.toolCallId, event)
  }

  /** Returns the question that a decision answers: the one that it names, else the one that was shown. */
  answered(
    call: string | ShownApproval,
    named: Question,
  ): { readonly toolCallId: string; readonly attempt?: number; readonly inputDigest?: string } {
    const given = typeof call === 'string' ? this.#shown.get(call) : call
    const { attempt = given?.attempt, inputDigest = given?.inputDigest } = named
    return {
      toolCallId: typeof call === 'string' ? call : call.toolCallId,
      ...omitUndefined({ attempt, inputDigest }),
    }
  }
}

/** The fields that an approval and a denial share. */
type DecisionGiven = Question & {
  readonly by: string
  readonly via?: string | undefined
  readonly roles?: readonly string[] | undefined
}

const decision = {
  by: filledText,
  via: maybe(filledText),
  roles: maybe(listOf(filledText)),
  attempt: maybe(numberFrom(1, { whole: true })),
  inputDigest: maybe(filledText),
}

const approval = fields<
  DecisionGiven & {
    readonly input?: object | undefined
    readonly reason?: string | undefined
    readonly standing?: StandingOptions | undefined
  }
>({
  ...decision,
  standing: maybe(
    fields<StandingOptions>({ for: oneOf(standingScopes), expiresInMs: longTime }, { ttlMs: 'expiresInMs' }),
  ),
  reason: maybe(anyText),
  input: maybe(anyObject),
})
const denial = fields<DecisionGiven & { readonly reason: string }>({ ...decision, reason: anyText })

/** Checks a pending approval that a caller gives back. */
export const shownApproval: Schema = fields<ShownApproval & OrUndefined<Partial<PendingApproval>>>({
  toolCallId: filledText,
  attempt: numberFrom(1, { whole: true }),
  inputDigest: filledText,
  runId: maybe(anyText),
  name: maybe(anyText),
  input: maybe(anyObject),
  reason: maybe(anyText),
  approvers: maybe(listOf(anyObject)),
  approvals: maybe(listOf(anyObject)),
})

/** The id of a call contains the run that asked: an approval that names another run is wrong. */
function findOtherRun(call: unknown): Fault | undefined {
  const { toolCallId, runId } = Object(call) as Partial<PendingApproval>
  if (toolCallId === undefined || runId === undefined) return undefined
  const asking = extractRunId(toolCallId)
  if (asking === undefined || asking === runId) return undefined
  return {
    path: 'the approval.runId',
    what: 'is not the run of its toolCallId; give the approval as it was shown',
  }
}

/** Returns what is wrong with a decision that a caller gave; `undefined` if nothing is. */
export function findDecisionFault(
  kind: 'approve' | 'deny',
  call: unknown,
  decision: unknown,
): Fault | undefined {
  const fault =
    typeof call === 'object'
      ? placeFault('the approval', shownApproval(call))
      : placeFault('the tool call id', filledText(call))
  return fault ?? findOtherRun(call) ?? (kind === 'approve' ? approval : denial)(decision)
}

const raising = fields<{ readonly by: string; readonly reason?: string | undefined }>({
  by: filledText,
  reason: maybe(anyText),
})

/** Returns what is wrong with a limit that a caller raises; `undefined` if nothing is. */
export function raiseFault(limit: unknown, max: unknown, decision: unknown): Fault | undefined {
  return (
    placeFault('the limit', limitName(limit)) ??
    placeFault(String(limit), limitChecks[limit as LimitName](max)) ??
    placeFault('the decision', raising(decision))
  )
}

const cancelling = fields<{ readonly by?: string | undefined; readonly reason?: string | undefined }>({
  by: maybe(filledText),
  reason: maybe(anyText),
})

/** Returns what is wrong with what a caller says of a cancel; `undefined` if nothing is. */
function cancelFault(decision: unknown): Fault | undefined {
  return placeFault('the decision', cancelling(decision))
}
