import { formatFault, type Fault } from '../values/schema.ts'
import type { Observer, Unsubscribable } from 'rxjs'
import { listAllTools } from '../agent/source-tools.ts'
import { type OutsideCommand, outsideCommand, type OutsideCommandOf } from '../events/commands.ts'
import type { Approvers } from '../events/event-parts.ts'
import type { InboxEntry } from '../ledger/ledger.ts'
import { areEnough, refuseApprover } from '../machine/approvals.ts'
import { findCall } from '../machine/calls.ts'
import type { Refusal } from '../machine/rules.ts'
import type { RunState } from '../machine/state.ts'
import { type CallChecker, type Judged, judgeCall } from '../tools/check-calls.ts'
import { findInputFault } from '../tools/tool-schema.ts'
import { answerInTime, late, createStoppableClock } from '../values/answer-in-time.ts'
import { LedgerConflictError } from '../values/errors.ts'
import type { Clock } from '../values/host.ts'
import { type RunId, extractRunId, type ToolCallId } from '../values/ids.ts'
import { findRoundedFault, isSameJson, omitUndefined, toCanonicalJson } from '../values/json.ts'
import { formatError } from '../values/text.ts'
import { forwardToChild, readRecordedEnding, toSettleCommand } from './children.ts'
import { requireLastEpoch } from './leases.ts'
import type { Mail } from './mailbox.ts'
import type { RunContext } from './run-context.ts'
import type { RuntimeParts } from './runtime-parts.ts'
import { loadState } from './run-result.ts'

/** The writer for which the inbox is read. */
interface Writer {
  readonly epoch: number
  /** The state in which the commands find the run. */
  readonly state: RunState
}

/**
 * The inbox of a run as its writer reads it. Each entry is read once: it is posted into the mailbox, sent on to a child
 * run, or refused. It leaves the ledger with the append that takes its key.
 */
export class RunInbox implements Pick<Observer<void>, 'next' | 'error'> {
  readonly #run: RunContext
  /** The keys of entries that were read. */
  readonly #seen = new Set<string>()
  /** Keys of entries that are dealt with, and that the next append takes out. */
  #spent: readonly string[] = []
  #isUnread = true
  /** The ledger has hinted at a change since the last read. */
  #isHinted = false
  #hints: Unsubscribable | undefined

  constructor(run: RunContext) {
    this.#run = run
  }

  /** It may hold entries that were not read. */
  get isUnread(): boolean {
    return this.#isUnread
  }

  /** It holds entries that are dealt with, for the next append to take out. */
  get hasSpent(): boolean {
    return this.#spent.length > 0
  }

  markUnread(): void {
    this.#isUnread = true
  }

  /** Call it when the run begins here: nothing was put into its inbox before its first event. */
  startsEmpty(): void {
    this.#isUnread = false
  }

  /** Makes the writer read it at each hint of the ledger. */
  watch(): void {
    this.#hints = this.#run.parts.ledger.changes(this.#run.runId, 'inbox').subscribe(this)
  }

  unwatch(): void {
    this.#hints?.unsubscribe()
  }

  next(): void {
    this.#isHinted = true
    this.markUnread()
    this.#run.mailbox.wake()
  }

  /** The hints of the ledger have failed. */
  error(error: unknown): void {
    const { runId, parts } = this.#run
    parts.host.report(error, `The ledger stopped telling what comes into the inbox of run ${runId}`)
  }

  /** The keys that an append takes out when it records what followed from this mail. */
  keysWith(mail: readonly Mail[]): readonly string[] {
    const keys = [...this.#spent]
    for (const { key } of mail) if (key !== undefined) keys.push(key)
    return keys
  }

  /** An append has taken its keys out. */
  taken(): void {
    this.#spent = []
  }

  async read({ epoch, state }: Writer): Promise<void> {
    const isHinted = this.#isHinted
    this.#isUnread = this.#isHinted = false
    const { runId, parts, sent } = this.#run
    const delivered = sent.deliveredKeys
    const entries = await parts.ledger.inbox(runId)
    if (delivered.length === 0 && entries.length === 0) {
      // A hint without an entry may be about a take-over: work in flight here must not wait for the next append to learn of
      // it.
      return isHinted ? await requireLastEpoch(parts.ledger, runId, epoch) : undefined
    }
    const there = new Set(entries.map(({ key }) => key))
    const lost = delivered.filter((key) => !there.has(key) && !this.#seen.has(key))
    if (lost.length > 0) {
      // Only the run's writer takes commands out of its inbox: those that are gone, another one has decided about.
      const taken = createTakenElsewhereError(runId, lost)
      for (const key of lost) sent.fail(taken, key)
      if ((await parts.ledger.head(runId))?.epoch !== epoch) throw taken
    }
    for (const { key, command, at } of entries) {
      if (this.#seen.has(key)) continue
      this.#seen.add(key)
      const fault = outsideCommand(command)
      if (fault) this.#refuseMalformed(key, fault)
      else await this.#accept({ key, command, at }, state)
    }
  }

  async #accept(entry: InboxEntry, state: RunState): Promise<void> {
    const { key, command } = entry
    const { runId, parts, mailbox, clock, context } = this.#run
    const targetRunId = 'toolCallId' in command ? extractRunId(command.toolCallId) : undefined
    if (targetRunId !== undefined && targetRunId !== runId) {
      // The child run decides about its call. The sender is in another process: one of this process sends it there itself.
      this.#spent = [...this.#spent, key]
      return await forwardToChild(parts.ledger, entry, targetRunId, runId)
    }
    // The tool checks the input of an approver, since the sender may not have had the tool. Only such commands wait for
    // their turn: a cancel stops the run at once.
    if (command.type === 'approve' && command.input) {
      const fault = await findChangedInputFault(command, state, {
        agent: this.#run.agents.find(state.agent),
        clock,
        context,
      })
      if (fault) return this.#refuse(key, fault)
    }
    if (command.type !== 'settle' || !command.child) return mailbox.post({ message: command, key })
    // The usage of a child run is read from its own events, whatever a command says.
    const ending = await readRecordedEnding(state, command.toolCallId as ToolCallId, parts)
    if (ending) return mailbox.post({ message: toSettleCommand(command.toolCallId, ending), key })
    const what = 'the child run has not ended; its own ledger says what it used'
    this.#refuseMalformed(key, { path: 'child', what })
  }

  /** Any process can put anything into an inbox: anything but a command is removed, and does not stop the run. */
  #refuseMalformed(key: string, fault: Fault): void {
    const message = `The command ${key} for run ${this.#run.runId} is wrong: ${formatFault(fault)}. No process can carry it out; send it again with the run's handle.`
    this.#refuse(key, { code: 'malformed', message })
  }

  #refuse(key: string, refusal: Refusal): void {
    this.#spent = [...this.#spent, key]
    this.#run.sent.acknowledge(key, refusal)
  }
}

/** Another process took commands out of the inbox of a run, which it drove in between. */
function createTakenElsewhereError(runId: RunId, keys: readonly string[]): LedgerConflictError {
  return new LedgerConflictError(
    'epoch',
    `Command ${keys.join(', ')} for run ${runId} was taken out of its inbox by another process, which drove the run ` +
      `in between. Its effect is on record: load the run with resume(), and look before you ask again.`,
  )
}

/** How long a tool may take to check an input, in milliseconds: who drives the run waits for it. */
const maxCheckMs = 10_000

interface Approver {
  readonly agent: (CallChecker & { readonly name: string }) | undefined
  readonly clock: Clock
  readonly context: unknown
}

/**
 * Returns why an approver's changed input would not run; `undefined` if it would, or if no such call waits for that. Where this
 * process knows the tool, the input goes the way of the model's: the tool's own check, the guardrails on tool input and the
 * agent's policy. Elsewhere the schema on record says so.
 */
export async function findChangedInputFault(
  command: OutsideCommand,
  state: RunState,
  { agent, clock, context }: Approver,
): Promise<Refusal | undefined> {
  if (command.type !== 'approve' || command.input === undefined) return undefined
  const call = findCall(state, command.toolCallId)
  if (call?.status !== 'awaiting_approval') return undefined
  const { runId } = state
  const { toolCallId, name } = call
  const { input } = command
  const tool = agent && listAllTools(agent).find((each) => each.name === name)
  const offered = [...state.definition.tools, ...(state.sourced?.tools ?? [])]
  const recorded = offered.find((each) => each.name === name)
  const { malformed: _model, ...plain } = call
  const fault =
    findRoundedFault(input, call.input) ??
    (tool && agent
      ? await findOwnFault(
          async (own) => await judgeCall({ ...plain, input }, tool, agent, { state, context, clock: own }),
          clock,
        )
      : recorded && (await findInputFault(recorded.inputSchema, input)))
  if (fault === undefined) return undefined
  if (typeof fault !== 'string')
    return isSameJson(input, call.input) ? undefined : refuseForDemands(state, command, fault)
  const message = `Tool call ${toolCallId} of run ${runId} was not approved, since ${name} cannot run with the changed input. ${fault} Approve it with an input that fits, or as it was asked for.`
  return { code: 'invalid_input', message }
}

/** The same of a run as its ledger has it. */
export async function findChangedInputRefusal(
  command: OutsideCommand,
  {
    runId,
    ledger,
    agents,
    ...checking
  }: Pick<RunContext, 'runId' | 'agents'> & Pick<RuntimeParts, 'ledger'> & Omit<Approver, 'agent'>,
): Promise<Refusal | undefined> {
  const state = await loadState(ledger, runId)
  if (state === undefined) return undefined
  const agent = agents.find(state.agent)
  return await findChangedInputFault(command, state, { agent, ...checking })
}

/** What the policies demand for the changed input counts like what they demanded for that of the model. */
function refuseForDemands(
  state: RunState,
  { toolCallId, by, roles }: OutsideCommandOf<'approve'>,
  approvers: readonly Approvers[],
): Refusal | undefined {
  const person = { by, ...omitUndefined({ roles }) }
  const decision = refuseApprover(state, { toolCallId: toolCallId as ToolCallId, approvers }, person)
  if (decision && 'refused' in decision) return decision.refused
  if (areEnough(approvers, [person])) return undefined
  const message = `With the changed input, several people have to approve tool call ${toolCallId}, and an input that several people approve cannot be changed by one of them. Deny the call with a reason, so that the model asks anew.`
  return { code: 'not_supported', message }
}

/** Returns why an input would not run, or what its approval demands. */
async function findOwnFault(
  check: (clock: Clock) => Promise<Judged>,
  clock: Clock,
): Promise<string | readonly Approvers[] | undefined> {
  const timers = createStoppableClock(clock)
  try {
    const judged = await answerInTime(() => check(timers.clock), clock, maxCheckMs)
    if (judged === late) return `Its check did not end in ${maxCheckMs} ms.`
    const { verdict } = judged
    if (verdict.kind === 'refuse') return verdict.text
    if (judged.input === undefined) return verdict.kind === 'ask' ? verdict.approvers : undefined
    return `A guardrail would put another input in its place: ${toCanonicalJson(judged.input)}. Approve that one, or deny the call.`
  } catch (error) {
    return `Its check failed: ${formatError(error)}`
  } finally {
    timers.stop()
  }
}
