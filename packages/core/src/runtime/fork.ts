import { ConfigurationError, RunNotFoundError } from '../errors.ts'
import { withEdits } from '../machine/evolve-history.ts'
import { forkedEvents, requireForkable } from '../machine/fork-events.ts'
import { audit, auditAll } from '../machine/invariants.ts'
import { messagesOf } from '../machine/history.ts'
import { textContent } from '../machine/outcome-text.ts'
import { findCall } from '../machine/state-views.ts'
import type { RunState } from '../machine/state.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { ResultPart, UserPart } from '../vocabulary/content.ts'
import { eventCatalogue } from '../vocabulary/event-catalogue.ts'
import type { Fact, HistoryEdit, RuntimeEvent } from '../vocabulary/event.ts'
import { parseRunId, type RunId } from '../vocabulary/ids.ts'
import { present } from '../vocabulary/present.ts'
import { sealed } from '../vocabulary/sealed.ts'
import type { Agent } from './agent.ts'
import { messageOf } from './input-message.ts'
import { lastOf, requireSoundEdits } from './session.ts'

/** What a fork does otherwise than the run that it shares its first events with. */
export interface ForkEdit {
  /** What the user said last, in other words. */
  readonly input?: string | readonly UserPart[]
  /** Messages of the history, changed or removed, by their places. */
  readonly history?: readonly HistoryEdit[]
  /** Results of calls that were started and have none at that event. */
  readonly results?: readonly {
    readonly toolCallId: string
    readonly content: string | readonly ResultPart[]
    readonly outcome?: 'success' | 'failed'
  }[]
  readonly by?: string
  readonly reason?: string
}

/** Where a run is forked, and what is different from there on. */
export interface ForkOptions {
  /** The last event that the fork shares. */
  readonly atSeq: number
  readonly edit?: ForkEdit
  /**
   * The agent that goes on, in the place of the active one of the same name: with other instructions, another model or
   * other tools. A resume of the fork in another process needs it too.
   */
  readonly agent?: Agent<unknown>
  /** The conversation that the fork belongs to; none where not given. */
  readonly sessionId?: string
}

/** The first events of a fork, edits included: they are appended all at once, or not at all. */
export async function forkOf(
  ledger: Ledger,
  { source, runId }: { readonly source: string; readonly runId: RunId },
  { atSeq, edit, sessionId }: ForkOptions,
): Promise<readonly RuntimeEvent[]> {
  const from = parseRunId(source)
  if (from === undefined || (await ledger.head(from)) === undefined) throw new RunNotFoundError(source)
  const shared: RuntimeEvent[] = []
  for await (const event of ledger.read(from, { toSeq: atSeq })) shared.push(event)
  const before = requireForkable(auditAll(shared), source, atSeq)
  const last = sessionId === undefined ? undefined : await lastOf(ledger, sessionId)
  const events = [
    ...forkedEvents(shared, {
      runId,
      ...(sessionId !== undefined && { sessionId, sessionPlace: (last?.sessionPlace ?? 0) + 1 }),
    }),
  ]
  let state = auditAll(events)
  for (const fact of edit && state ? editFacts(edit, state, before) : []) {
    const { seq, at } = events.at(-1) as RuntimeEvent
    const event = sealed({ runId, seq: seq + 1, epoch: 1, at, v: eventCatalogue[fact.type].v, ...fact })
    state = audit(state, event)
    events.push(event)
  }
  return events
}

function editFacts(edit: ForkEdit, state: RunState, source: RunState): readonly Fact[] {
  return [...resultFacts(edit, state, source), ...historyFacts(edit, state)]
}

function historyFacts({ input, history = [], by, reason }: ForkEdit, state: RunState): readonly Fact[] {
  const messages = messagesOf(state.history)
  const index = messages.findLastIndex(({ role }) => role === 'user')
  const said = input === undefined ? [] : [{ index, message: messageOf(input) }]
  const edits = [...history, ...said].toSorted((a, b) => a.index - b.index)
  if (edits.length === 0) return []
  if (
    state.phase === 'streaming' ||
    state.phase === 'executing' ||
    (state.phase === 'collecting' && state.calls.length > 0)
  ) {
    throw new ConfigurationError(
      `Event ${state.seq} stands in the middle of a turn (${state.phase}), where the history cannot be edited. Fork where the turn begins or ends.`,
    )
  }
  requireSoundEdits(state.runId, edits, messages)
  const edited = withEdits(messages, edits)
  return edited ? [{ type: 'history_edited', turn: state.turn, edits, ...present({ by, reason }) }] : []
}

function resultFacts({ results = [] }: ForkEdit, state: RunState, source: RunState): readonly Fact[] {
  return results.map(({ toolCallId: text, content, outcome = 'success' }): Fact => {
    const place = findCall(source, text) ?? findCall(state, text)
    const call =
      place && state.phase === 'executing' ? state.calls.find(({ part }) => part === place.part) : undefined
    if (call === undefined || call.status !== 'started') {
      throw new ConfigurationError(
        `Tool call ${text} was not started and without a result at event ${state.seq}, so it cannot be given another one there. Fork right behind its tool_started.`,
      )
    }
    const { toolCallId, name } = call
    const parts = typeof content === 'string' ? textContent(outcome, content) : content
    return { type: 'tool_result', turn: state.turn, toolCallId, name, outcome, content: parts }
  })
}
