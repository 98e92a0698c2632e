import { RunNotFoundError } from '../../values/errors.ts'
import { forkedEvents, requireForkable } from '../../machine/fork.ts'
import { audit, auditAll } from '../../machine/laws.ts'
import type { RunState } from '../../machine/state.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { eventTraits, type Fact, type ForkWrites, type RuntimeEvent } from '../../events/event.ts'
import { parseRunId, type RunId } from '../../values/ids.ts'
import { deepFreeze, omitUndefined } from '../../values/json.ts'
import type { Agent } from '../agent/agent.ts'
import { editFacts, type ForkEdit } from './fork-edit.ts'
import { requireContext } from '../definition/run-context.ts'
import { resultsUnderWay } from './recorded-results.ts'
import { lastOf } from '../session/session.ts'

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
   * What happens to a write that no recorded result answers, since the source run has performed its own: `ask` waits
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
export async function forkOf(
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
  const last = sessionId === undefined ? undefined : await lastOf(ledger, sessionId)
  if (last) await mayFollow?.(last.runId)
  const events = [
    ...forkedEvents(shared, {
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
