import { ConfigurationError } from '../values/errors.ts'
import type { EventOf, ForkWrites, ParentRef, RuntimeEvent } from '../events/event.ts'
import { deriveChildRunId, deriveIdempotencyKey, type RunId, extractRunId } from '../values/ids.ts'
import { type Json, omitUndefined } from '../values/json.ts'
import { isBackgroundInput } from './calls.ts'
import { digestSummaryRequest } from './compaction.ts'
import { evolve } from './evolve.ts'
import { computeRequestDigest } from './request.ts'
import type { RunState } from './state.ts'

/** Who forks, and the conversation that the fork begins or continues with. */
export interface ForkIdentity {
  readonly runId: RunId
  readonly sessionId?: string
  readonly sessionPlace?: number
  /** Default: that of the run. */
  readonly owner?: string
  /** How its writes are treated. Default: `ask`. */
  readonly writes?: ForkWrites
}

/**
 * The first events of a run as those of another: the same facts in the same order, with tool call ids, idempotency keys
 * and digests that are the fork's own. Pure. Its writer is the first, so all of them are of epoch 1.
 */
export function buildForkedEvents(
  events: readonly RuntimeEvent[],
  { runId, writes = 'ask', ...session }: ForkIdentity,
): readonly RuntimeEvent[] {
  const [first] = events
  const last = events.at(-1)
  if (first === undefined || last === undefined) return []
  const parent: ParentRef = { runId: first.runId, seq: last.seq, relation: 'fork', writes }
  const forked: RuntimeEvent[] = []
  let state: RunState | undefined
  for (const event of events) {
    const moved = moveTo(runId, event, { parent, ...session })
    const own = state === undefined ? moved : withOwnDigest(state, moved)
    state = evolve(state, own)
    forked.push(own)
  }
  return forked
}

function moveTo(
  runId: RunId,
  event: RuntimeEvent,
  started: Pick<EventOf<'run_started'>, 'parent' | 'sessionId' | 'sessionPlace' | 'owner'>,
): RuntimeEvent {
  const renamed = withIds(event as unknown as Json, event.runId, runId) as unknown as RuntimeEvent
  // The inbox of the other run is not that of the fork.
  const { inboxKey: _other, ...copied } = renamed
  const moved = { ...copied, runId, epoch: 1 } as RuntimeEvent
  if (moved.type === 'run_started') {
    const { sessionId: _session, sessionPlace: _place, parent: _parent, ...others } = moved
    const { idempotencyKey: _key, givenLimits: _limits, ...rest } = others
    return { ...rest, ...omitUndefined(started) }
  }
  // Its results are on the record of the run before that one.
  if (moved.type === 'tool_requests_collected') {
    return { ...moved, calls: moved.calls.map(({ recorded: _other, ...call }) => call) }
  }
  // Law 13: an approval is for one execution, in its own run alone.
  if (moved.type === 'approval_decided' || moved.type === 'approval_added')
    return { ...moved, elsewhere: true }
  if (moved.type !== 'tool_started') return moved
  const { toolCallId, child } = moved
  return {
    ...moved,
    idempotencyKey: deriveIdempotencyKey(runId, toolCallId),
    ...(child !== undefined && { child: deriveChildRunId(runId, toolCallId) }),
  }
}

/** Every string that is a tool call id of one run, or names its work in the background, as that of another. */
function withIds(value: Json, from: RunId, to: RunId): Json {
  if (typeof value === 'string') {
    const id = isBackgroundInput(value) ? value.slice('background '.length) : value
    return extractRunId(id) === from ? value.replace(from.replaceAll('-', ''), to.replaceAll('-', '')) : value
  }
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => withIds(item, from, to))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withIds(item, from, to)]))
}

/** Law 7: the digest of a request covers its ids. */
function withOwnDigest(state: RunState, event: RuntimeEvent): RuntimeEvent {
  if (event.type === 'model_call_started')
    return { ...event, requestDigest: computeRequestDigest(state, event) }
  if (event.type === 'compaction_started')
    return { ...event, requestDigest: digestSummaryRequest(state, event) }
  return event
}

/** Refuses a place in a run that no fork can begin at. */
export function requireForkable(state: RunState | undefined, runId: string, atSeq: number): RunState {
  const refuse = (why: string): never => {
    throw new ConfigurationError(`Run ${runId} cannot be forked at its event ${atSeq}: ${why}`)
  }
  if (state === undefined || state.seq !== atSeq || state.history.length === 0) {
    return refuse('name an event from its first input (2) to its last.')
  }
  if (state.phase === 'done') {
    return refuse(
      'the run ends there. Name an earlier event; to continue after its end, start a run with from.',
    )
  }
  const awaitsChild =
    state.phase === 'executing' &&
    state.calls.some(({ status, child }) => status === 'deferred' && child !== undefined)
  return awaitsChild ? refuse('it awaits a child run there. Name an event before its tool_deferred.') : state
}
