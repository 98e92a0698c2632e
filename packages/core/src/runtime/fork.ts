import type { Agent } from '../agent/agent.ts'
import { requireContext } from '../agent/prepare-turn.ts'
import type { RuntimeRules } from '../agent/registry.ts'
import { requireRules } from '../agent/run-rules.ts'
import type { OutsideCommand } from '../events/commands.ts'
import type { Outcome, ResultPart, UserPart } from '../events/content.ts'
import {
  type EventOf,
  eventTraits,
  type Fact,
  type ForkWrites,
  type HistoryEdit,
  type ParentRef,
  type RuntimeEvent,
} from '../events/event.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { findCall, toTextContent } from '../machine/calls.ts'
import { decide } from '../machine/decide.ts'
import { withEdits } from '../machine/evolve.ts'
import { buildForkedEvents, requireForkable } from '../machine/fork.ts'
import { readMessages } from '../machine/history.ts'
import { audit, auditAll } from '../machine/laws.ts'
import { startOrRefuse } from '../machine/next-calls.ts'
import type { Refusal } from '../machine/rules.ts'
import type { Call, CallStatus, RunState } from '../machine/state.ts'
import { computeDigest } from '../values/digest.ts'
import { ConfigurationError, RunNotFoundError } from '../values/errors.ts'
import { parseRunId, type RunId, type ToolCallId } from '../values/ids.ts'
import { deepFreeze, type JsonObject, omitUndefined } from '../values/json.ts'
import { readLastRun, requireSoundEdits } from './session.ts'
import { toUserMessage } from './start-run.ts'

/** Changes to the events that a fork shares with its source. Calls have the ids of the source. */
export interface ForkEdit {
  /** Replaces the last message of the user. */
  readonly input?: string | readonly UserPart[] | undefined
  /** Messages of the history to change or remove, by their places. */
  readonly history?: readonly HistoryEdit[] | undefined
  /** Results for calls that are started and have no result at that event. */
  readonly results?:
    | readonly {
        readonly toolCallId: string
        readonly content: string | readonly ResultPart[]
        readonly outcome?: 'success' | 'failed' | undefined
      }[]
    | undefined
  /** Decisions about calls that wait for an approval at that event. */
  readonly approvals?: readonly ForkApproval[] | undefined
  readonly by?: string | undefined
  readonly reason?: string | undefined
}

/** A decision about a call and who made it; the model reads why the call was denied. */
export type ForkApproval = { readonly toolCallId: string; readonly by: string } & (
  | { readonly approved: true; readonly input?: JsonObject | undefined }
  | { readonly approved: false; readonly reason: string }
)

/** A fork in the state of its shared events, and the source run in the same state. */
interface Forked {
  readonly state: RunState
  readonly source: RunState
}

/**
 * Returns the facts that record the edits of a fork. Throws a `ConfigurationError` for an edit that is impossible
 * there.
 */
export function toEditFacts(edit: ForkEdit, forked: Forked): readonly Fact[] {
  return [
    ...toResultFacts(edit, forked),
    ...toApprovalFacts(edit, forked),
    ...toHistoryFacts(edit, forked.state),
  ]
}

/** Returns the call of the fork at the place of a call of the source run; callers know the id of the latter. */
function findCallAt(
  { state, source }: Forked,
  toolCallId: string,
  statuses: readonly CallStatus[],
): Call | undefined {
  const place = findCall(source, toolCallId) ?? findCall(state, toolCallId)
  if (place === undefined || state.phase !== 'executing') return undefined
  return state.calls.find((call) => call.part === place.part && statuses.includes(call.status))
}

function toResultFacts({ results = [] }: ForkEdit, forked: Forked): readonly Fact[] {
  const { state } = forked
  return results.map(({ toolCallId: given, content, outcome = 'success' }): Fact => {
    const call = findCallAt(forked, given, ['started', 'deferred'])
    if (call === undefined) {
      throw new ConfigurationError(
        `Tool call ${given} is not a started call without a result at event ${state.seq}, so the fork cannot give it a result there. Fork right after its tool_started.`,
      )
    }
    const { toolCallId, name } = call
    const parts = typeof content === 'string' ? toTextContent(outcome, content) : content
    return { type: 'tool_result', turn: state.turn, toolCallId, name, outcome, content: parts }
  })
}

function toApprovalFacts({ approvals = [] }: ForkEdit, forked: Forked): readonly Fact[] {
  const { state } = forked
  return approvals.flatMap(({ toolCallId: given, by, ...decision }): readonly Fact[] => {
    const call = findCallAt(forked, given, ['awaiting_approval'])
    if (call === undefined) {
      throw new ConfigurationError(
        `Tool call ${given} waits for no approval at event ${state.seq}, so the fork cannot decide about it there. Fork right after its approval_requested.`,
      )
    }
    const here = { toolCallId: call.toolCallId, by, attempt: call.attempts + 1 }
    const command = decision.approved
      ? { type: 'approve' as const, ...here, ...omitUndefined({ input: decision.input }) }
      : { type: 'deny' as const, ...here, reason: decision.reason }
    const decided = decide(state, command, { at: state.at, random: 0 })
    if ('facts' in decided) return decided.facts
    throw new ConfigurationError(decided.refused.message)
  })
}

function toHistoryFacts({ input, history = [], by, reason }: ForkEdit, state: RunState): readonly Fact[] {
  const messages = readMessages(state.history)
  const index = messages.findLastIndex(({ role }) => role === 'user')
  const replaced = input === undefined ? [] : [{ index, message: toUserMessage(input) }]
  const edits = [...history, ...replaced].toSorted((a, b) => a.index - b.index)
  if (edits.length === 0) return []
  if (
    state.phase === 'streaming' ||
    state.phase === 'executing' ||
    (state.phase === 'collecting' && state.calls.length > 0)
  ) {
    throw new ConfigurationError(
      `Event ${state.seq} is in the middle of a turn (${state.phase}), where the history cannot be edited. Fork where the turn begins or ends.`,
    )
  }
  requireSoundEdits(state.runId, edits, messages)
  const edited = withEdits(messages, edits)
  return edited ? [{ type: 'history_edited', turn: state.turn, edits, ...omitUndefined({ by, reason }) }] : []
}

/** Where a run is forked, and what changes after that. */
export interface ForkOptions extends RuntimeRules {
  /** The last event that the fork shares. */
  readonly atSeq: number
  readonly edit?: ForkEdit | undefined
  /**
   * The agent that continues, instead of the active one of the same name: with other instructions, another model or
   * other tools. A resume of the fork in another process needs it too.
   */
  readonly agent?: Agent<unknown> | undefined
  /**
   * The treatment of a write that no recorded result answers, since the source run has performed its own: `ask` waits
   * for an approval in the fork, including one in `edit`; `stub` does not perform it, and the model reads so; `run`
   * performs it, under a new idempotency key. Applies to child runs of the fork as well. An approval counts in its own run
   * alone: what was approved before the fork begins, a read included, is asked about again. Default: `ask`.
   */
  readonly writes?: ForkWrites | undefined
  /** The conversation that the fork belongs to; if not given, the fork belongs to none. */
  readonly sessionId?: string | undefined
  /** As for `run`: who forks, in place of the owner of the source run. */
  readonly owner?: string | undefined
  /** As for `run`. */
  readonly mayFollow?: ((runId: RunId) => void | Promise<void>) | undefined
}

/**
 * Returns the first events of a fork: the shared ones, its edits, and the recorded outcomes of calls that were under
 * way in the source run. They are appended all at once, or not at all.
 */
export async function buildFork(
  ledger: Ledger,
  { source, runId }: { readonly source: string; readonly runId: RunId },
  {
    atSeq,
    edit = {},
    sessionId,
    writes = 'ask',
    owner,
    mayFollow,
    context,
  }: ForkOptions & {
    readonly context?: unknown
  },
  drift: Parameters<typeof requireRules>[2],
  findFault: (command: OutsideCommand, state: RunState) => Promise<Refusal | undefined>,
): Promise<readonly RuntimeEvent[]> {
  const from = parseRunId(source)
  if (from === undefined || (await ledger.head(from)) === undefined) throw new RunNotFoundError(source)
  const shared: RuntimeEvent[] = []
  for await (const event of ledger.read(from, { toSeq: atSeq })) shared.push(event)
  const before = requireForkable(auditAll(shared), source, atSeq)
  requireContext(before, context)
  requireRules(runId, before.rules ?? [], drift)
  const last = sessionId === undefined ? undefined : await readLastRun(ledger, sessionId)
  if (last) await mayFollow?.(last.runId)
  const events = [
    ...buildForkedEvents(shared, {
      runId,
      writes,
      ...omitUndefined({ owner }),
      ...(sessionId !== undefined && { sessionId, sessionPlace: (last?.sessionPlace ?? 0) + 1 }),
    }),
  ]
  let state = auditAll(events) as RunState
  const record = (facts: readonly Fact[]): void => {
    for (const fact of facts) {
      const { seq, at } = events.at(-1) as RuntimeEvent
      const event = deepFreeze({ runId, seq: seq + 1, epoch: 1, at, v: eventTraits[fact.type].v, ...fact })
      state = audit(state, event)
      events.push(event)
    }
  }
  // A changed input goes the way that it goes in any run: checks, guardrails and policies.
  for (const approval of edit.approvals ?? []) {
    const call = findCallAt({ state, source: before }, approval.toolCallId, ['awaiting_approval'])
    if (!approval.approved || approval.input === undefined || call === undefined) continue
    const { by, input } = approval
    const fault = await findFault({ type: 'approve', toolCallId: call.toolCallId, by, input }, state)
    if (fault) throw new ConfigurationError(fault.message)
  }
  record(toEditFacts(edit, { state, source: before }))
  record(await readResultsUnderWay(ledger, { state, source: before }))
  return events
}

/** A result on record of the run that a fork shares its first events with. */
export interface RecordedResult {
  readonly toolCallId: ToolCallId
  readonly name: string
  /** Of the input that it ran with. */
  readonly inputDigest: string
  readonly outcome: Outcome
  readonly content: readonly ResultPart[]
  /** The content that the model read. */
  readonly projected?: readonly ResultPart[]
  readonly shown?: readonly ResultPart[]
}

/** The part of a call that a recorded result must match. */
export interface AskedCall {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly input: JsonObject
}

/**
 * The facts that end the calls that were about to run, or under way, where a fork begins, if the other run's record has
 * their ending: nothing is started again, and nothing is in doubt.
 */
async function readResultsUnderWay(ledger: Ledger, { state, source }: Forked): Promise<readonly Fact[]> {
  if (state.phase !== 'executing' || source.phase !== 'executing') return []
  const { turn, calls } = state
  const inputs = new Map(source.calls.map(({ toolCallId, input }) => [toolCallId, input]))
  const reports = new ToolReports(source.calls.filter(({ status }) => status === 'to_retry'))
  const facts: Fact[] = []
  for await (const event of ledger.read(source.runId, { fromSeq: source.seq + 1 })) {
    // Every call has its result before the turn continues, so reading stops there: the length of the run does not matter.
    if (event.type === 'tool_results_injected') break
    if (event.type === 'approval_decided' && event.input) {
      // Nobody can say any more whether a call with a removed input is the same.
      if (event.removed) inputs.delete(event.toolCallId)
      else inputs.set(event.toolCallId, event.input)
    }
    if (!reports.take(event)) continue
    const place = source.calls.find(({ toolCallId }) => toolCallId === event.toolCallId)
    const call = calls.find(({ part }) => part === place?.part)
    if (call === undefined || !isUnderWay(call, inputs.get(event.toolCallId))) continue
    const { toolCallId, name } = call
    const { outcome, content, projected, shown, toolCallId: reused } = event
    if (isAboutToStart(call)) {
      const start = startOrRefuse(state, call, state.at)
      facts.push(start.type === 'tool_started' ? { ...start, recorded: reused } : start)
      if (start.type === 'tool_result') continue
    }
    const result = { type: 'tool_result' as const, turn, toolCallId, name, outcome, content, durationMs: 0 }
    facts.push({ ...result, ...omitUndefined({ projected, shown }), reused })
  }
  return facts
}

function isAboutToStart({ status }: Pick<Call, 'status'>): boolean {
  return status === 'ready' || status === 'to_retry'
}

/** True for a started call, and for a write that is about to start with the input that the other run's record answers. */
function isUnderWay(
  { status, input, effect, inputRemoved }: Call,
  recordedInput: JsonObject | undefined,
): boolean {
  if (status === 'started' || status === 'deferred') return true
  if (!isAboutToStart({ status }) || effect === 'read' || inputRemoved) return false
  return recordedInput !== undefined && computeDigest(recordedInput) === computeDigest(input)
}

/** Tells the results that the outside world reported from those that the controller decided, over a run's events. */
class ToolReports {
  readonly #awaitingRetry: Set<ToolCallId>

  constructor(awaitingRetry: readonly Pick<Call, 'toolCallId'>[] = []) {
    this.#awaitingRetry = new Set(awaitingRetry.map(({ toolCallId }) => toolCallId))
  }

  /**
   * Takes the next event of the run. Returns whether it is a result from the call's tool, the only source of a duration, or
   * from the caller that settled the call. A call that ends while it waits for its next attempt has the controller's result,
   * with the outcome of its last attempt.
   */
  take(event: RuntimeEvent): event is EventOf<'tool_result'> {
    if (event.type === 'tool_attempt_failed') this.#awaitingRetry.add(event.toolCallId)
    if (event.type === 'tool_started') this.#awaitingRetry.delete(event.toolCallId)
    // A handle is no result: the work went on beside that run.
    if (event.type !== 'tool_result' || event.background) return false
    const { durationMs, outcome, toolCallId } = event
    if (durationMs !== undefined) return true
    return (outcome === 'success' || outcome === 'failed') && !this.#awaitingRetry.has(toolCallId)
  }
}

/** Finds the recorded results for the calls of a fork, as long as the fork has not gone its own way. */
export class RecordedResults {
  readonly #results: readonly RecordedResult[]
  readonly #served = new Set<string>()

  constructor(results: readonly RecordedResult[]) {
    this.#results = results
  }

  /**
   * The recorded calls whose results answer the calls of a reply, each at its call's place; `undefined` for a call that
   * none answers. No recorded call answers two.
   */
  answering(state: RunState, calls: readonly AskedCall[]): readonly (ToolCallId | undefined)[] {
    const taken = new Set(this.#served)
    return calls.map((call) => {
      const found = this.#find(state, call, taken)
      if (found) taken.add(found.toolCallId)
      return found?.toolCallId
    })
  }

  /**
   * The recorded result for a call that is started; `undefined` if it is to run. A call that was started before may have begun
   * for real, and the other run may have come to its result since then: that is not the result of this one.
   */
  serve(state: RunState, call: Call): RecordedResult | undefined {
    const promised = this.#results.find(({ toolCallId }) => toolCallId === call.recorded)
    const found = promised ?? (call.attempts > 1 ? undefined : this.#find(state, call, this.#served))
    if (found) this.#served.add(found.toolCallId)
    return found
  }

  #find(
    { fork, turn }: RunState,
    { name, input }: AskedCall,
    taken: ReadonlySet<string>,
  ): RecordedResult | undefined {
    if (fork?.divergedIn !== undefined && fork.divergedIn < turn) return undefined
    // An approver may have changed the input: compare the one that runs.
    const inputDigest = computeDigest(input)
    if (fork?.own.some((own) => own.name === name && own.inputDigest === inputDigest)) return undefined
    return this.#results.find(
      (result) =>
        result.name === name &&
        result.inputDigest === inputDigest &&
        !taken.has(result.toolCallId) &&
        !fork?.reused.includes(result.toolCallId),
    )
  }
}

/** Reads the results that a fork can be served: those that the tools of the other run gave after the shared events. */
export async function readRecordedResults(
  ledger: Ledger,
  { runId, seq: shared }: ParentRef,
): Promise<RecordedResults> {
  const digests = new Map<ToolCallId, string>()
  const results: RecordedResult[] = []
  const reports = new ToolReports()
  for await (const event of ledger.read(runId)) {
    if (event.type === 'tool_requests_collected') {
      for (const { toolCallId, inputDigest } of event.calls) digests.set(toolCallId, inputDigest)
    }
    if (event.type === 'approval_decided' && event.input) {
      if (event.removed) digests.delete(event.toolCallId)
      else digests.set(event.toolCallId, computeDigest(event.input))
    }
    if (event.type === 'background_ended' && event.durationMs !== undefined && event.seq > shared) {
      // A fork has what came later at once.
      const { toolCallId, name, outcome, content } = event
      results.push({ toolCallId, name, outcome, content, inputDigest: digests.get(toolCallId) ?? '' })
      continue
    }
    if (!reports.take(event) || event.seq <= shared) continue
    const { toolCallId, name, outcome, content, projected, shown } = event
    const inputDigest = digests.get(toolCallId) ?? ''
    results.push({ toolCallId, name, outcome, content, inputDigest, ...omitUndefined({ projected, shown }) })
  }
  return new RecordedResults(results)
}
