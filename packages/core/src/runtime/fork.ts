import type { Agent } from '../agent/agent.ts'
import { requireContext } from '../agent/prepare-turn.ts'
import type { ResultPart, UserPart } from '../events/content.ts'
import {
  eventTraits,
  type Fact,
  type ForkWrites,
  type HistoryEdit,
  type RuntimeEvent,
} from '../events/event.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { findCall, textContent } from '../machine/calls.ts'
import { decide } from '../machine/decide.ts'
import { withEdits } from '../machine/evolve.ts'
import { buildForkedEvents, requireForkable } from '../machine/fork.ts'
import { messagesOf } from '../machine/history.ts'
import { audit, auditAll } from '../machine/laws.ts'
import type { Call, CallStatus, RunState } from '../machine/state.ts'
import { ConfigurationError, RunNotFoundError } from '../values/errors.ts'
import { parseRunId, type RunId } from '../values/ids.ts'
import { deepFreeze, type JsonObject, omitUndefined } from '../values/json.ts'
import { resultsUnderWay } from './recorded-results.ts'
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
export interface Forked {
  readonly state: RunState
  readonly source: RunState
}

/**
 * Returns the facts that record the edits of a fork. Throws a `ConfigurationError` for an edit that is impossible
 * there.
 */
export function editFacts(edit: ForkEdit, forked: Forked): readonly Fact[] {
  return [...resultFacts(edit, forked), ...approvalFacts(edit, forked), ...historyFacts(edit, forked.state)]
}

/** Returns the call of the fork at the place of a call of the source run; callers know the id of the latter. */
function callAt(
  { state, source }: Forked,
  toolCallId: string,
  statuses: readonly CallStatus[],
): Call | undefined {
  const place = findCall(source, toolCallId) ?? findCall(state, toolCallId)
  if (place === undefined || state.phase !== 'executing') return undefined
  return state.calls.find((call) => call.part === place.part && statuses.includes(call.status))
}

function resultFacts({ results = [] }: ForkEdit, forked: Forked): readonly Fact[] {
  const { state } = forked
  return results.map(({ toolCallId: given, content, outcome = 'success' }): Fact => {
    const call = callAt(forked, given, ['started', 'deferred'])
    if (call === undefined) {
      throw new ConfigurationError(
        `Tool call ${given} is not a started call without a result at event ${state.seq}, so the fork cannot give it a result there. Fork right after its tool_started.`,
      )
    }
    const { toolCallId, name } = call
    const parts = typeof content === 'string' ? textContent(outcome, content) : content
    return { type: 'tool_result', turn: state.turn, toolCallId, name, outcome, content: parts }
  })
}

function approvalFacts({ approvals = [] }: ForkEdit, forked: Forked): readonly Fact[] {
  const { state } = forked
  return approvals.flatMap(({ toolCallId: given, by, ...decision }): readonly Fact[] => {
    const call = callAt(forked, given, ['awaiting_approval'])
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

function historyFacts({ input, history = [], by, reason }: ForkEdit, state: RunState): readonly Fact[] {
  const messages = messagesOf(state.history)
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
export interface ForkOptions {
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
   * alone: what was approved before the fork begins, a read included, is asked about anew. Default: `ask`.
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
): Promise<readonly RuntimeEvent[]> {
  const from = parseRunId(source)
  if (from === undefined || (await ledger.head(from)) === undefined) throw new RunNotFoundError(source)
  const shared: RuntimeEvent[] = []
  for await (const event of ledger.read(from, { toSeq: atSeq })) shared.push(event)
  const before = requireForkable(auditAll(shared), source, atSeq)
  requireContext(before, context)
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
  record(editFacts(edit, { state, source: before }))
  record(await resultsUnderWay(ledger, { state, source: before }))
  return events
}
