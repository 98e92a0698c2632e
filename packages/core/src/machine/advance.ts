import type { Cause } from '../vocabulary/events/cause.ts'
import { eventTraits, usualCause } from '../vocabulary/events/event-traits.ts'
import type { Fact, RuntimeEvent } from '../vocabulary/events/event.ts'
import { joinedEvents, keepStretches, type Stretch } from './stretches.ts'
import type { RunId } from '../vocabulary/values/ids.ts'
import { omitUndefined } from '../vocabulary/values/omit-undefined.ts'
import { freezeOwn } from '../vocabulary/values/deep-freeze.ts'
import type { Action } from './state/action.ts'
import { makeBatch } from './messages/batch-arrays.ts'
import { nextAction } from './next/next-action.ts'
import { decide } from './decide/decide.ts'
import { decideArrived, decideDeltas, type Incoming, type DeltaFacts } from './decide/decide-deltas.ts'
import { nothing, type Decision, type Refusal, type Stamp } from './state/decision.ts'
import { audit, auditStretch } from './laws/invariants.ts'
import type { Rules } from './state/rules.ts'
import type { RunState } from './state/state.ts'

/** The writer's epoch, recorded in every event. */
export interface Writer {
  readonly runId: RunId
  readonly epoch: number
}

/** An action that has nothing to record: the run waits, is suspended, or is finished. */
export type WaitingAction = Exclude<Action, { readonly facts: readonly Fact[] }>

/** One batch of events: what follows from some messages, up to where the run has to wait. */
export interface EventBatch {
  readonly events: readonly RuntimeEvent[]
  readonly state: RunState
  readonly action: WaitingAction
  /** For each message why it was refused, or `undefined`. */
  readonly refusals: readonly (Refusal | undefined)[]
}

/** How a batch is made. */
export interface AdvanceOptions {
  readonly writer: Writer
  /** Time and chance, asked for each message, but once for neighbouring deltas of one part, and once for the controller. */
  readonly stamp: () => Stamp
  /** The rules of the active agent, by its name. */
  readonly rulesOf?: (agent: string) => Rules
  /** The key in the inbox of each message that came from there. */
  readonly keys?: readonly (string | undefined)[]
  /** Only what has arrived is decided: nothing new is begun. */
  readonly draining?: boolean
}

/** Loop guard: a controller that takes more rounds contradicts itself. */
const MAX_ROUNDS = 10_000

/**
 * Decides about messages in order, then asks the controller until nothing is left to record. Pure: nothing of the
 * batch has happened until it is appended. Every event is audited before it may be.
 */
export function advance(
  before: RunState | undefined,
  messages: readonly Incoming[],
  options: AdvanceOptions,
): EventBatch {
  return makeBatch(() => batchOf(before, messages, options))
}

function batchOf(
  before: RunState | undefined,
  messages: readonly Incoming[],
  { writer, stamp, rulesOf = () => ({}), keys = [], draining = false }: AdvanceOptions,
): EventBatch {
  const events: RuntimeEvent[] = []
  const stretches: Stretch[] = []
  let state = before
  const record = (facts: readonly Fact[] | DeltaFacts, at: number, cause: Cause, inboxKey?: string): void => {
    const { runId, epoch } = writer
    const next = (state?.seq ?? 0) + 1
    const recording = { runId, epoch, at, cause, inboxKey, draining }
    if ('texts' in facts) {
      const from = events.length
      recordDeltas(events, facts, next, recording)
      const to = events.length
      const ends = [events[from] as RuntimeEvent, events[to - 1] as RuntimeEvent] as const
      state = auditStretch(state as RunState, ends, facts.texts)
      if (to - from > 1) stretches.push({ from, to, texts: facts.texts })
      return
    }
    let seq = next
    for (const fact of facts) {
      const event = recordedAs(fact, seq++, recording)
      state = audit(state, event)
      events.push(event)
    }
  }
  const batch = (action: WaitingAction): EventBatch => {
    keepStretches(events, stretches)
    return { events, state: state as RunState, action, refusals }
  }
  const refusals: (Refusal | undefined)[] = []
  for (let place = 0; place < messages.length; place = refusals.length) {
    const now = stamp()
    const { decision, count } = decideFrom(state, messages, place, now)
    const isRefused = 'refused' in decision
    if (!isRefused) record(decision.facts, now.at, causeOf(messages[place] as Incoming), keys[place])
    for (let each = 0; each < count; each++) refusals.push(isRefused ? decision.refused : undefined)
  }
  const { at } = stamp()
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (state === undefined) break
    if (draining) return batch({ kind: 'suspend' })
    const action = nextAction(state, at, rulesOf(state.agent))
    if (!('facts' in action)) return batch(action)
    record(action.facts, at, 'controller')
  }
  throw new Error(
    `The loop controller of run ${writer.runId} did not come to an end in ${MAX_ROUNDS} rounds.`,
  )
}

/** The decision about the message at a place or, where that is a delta of a reply, about all deltas of its part beside it. */
function decideFrom(
  state: RunState | undefined,
  messages: readonly Incoming[],
  place: number,
  now: Stamp,
): { readonly decision: Decision | { readonly facts: DeltaFacts }; readonly count: number } {
  const message = messages[place] as Incoming
  if (message.type === 'deltas') {
    const facts = decideArrived(state, message)
    return { decision: facts ? { facts } : nothing, count: 1 }
  }
  const deltas = state && decideDeltas(state, messages, place)
  if (deltas) return { decision: { facts: deltas }, count: deltas.texts.length }
  return { decision: decide(state, message, now), count: 1 }
}

function causeOf(message: Incoming): Cause {
  return message.type === 'deltas' ? message.of.type : message.type
}

/** Who records a fact, where, when, and what it follows from. */
export interface Recording extends Writer {
  readonly seq: number
  /** Milliseconds since 1970 UTC. */
  readonly at: number
  readonly cause: Cause
  readonly draining?: boolean
  readonly inboxKey?: string | undefined
}

/** A fact as it is recorded. */
export function eventOf(fact: Fact, recording: Recording): RuntimeEvent {
  return recordedAs(fact, recording.seq, recording)
}

function recordedAs(fact: Fact, seq: number, recording: Omit<Recording, 'seq'>): RuntimeEvent {
  const { runId, epoch, at, cause, inboxKey, draining = false } = recording
  const { v } = eventTraits[fact.type]
  const isUsual = cause === usualCause(fact)
  if (isUsual && inboxKey === undefined && !draining) return freezeOwn({ runId, seq, epoch, at, v, ...fact })
  const decided = omitUndefined({
    cause: isUsual ? undefined : cause,
    inboxKey,
    draining: draining ? (true as const) : undefined,
  })
  return freezeOwn({ runId, seq, epoch, at, v, ...decided, ...fact })
}

/** Adds deltas of a part as they are recorded: the same as each alone, in a fraction of the time. Most events are deltas of text. */
function recordDeltas(
  events: RuntimeEvent[],
  { fact, texts }: DeltaFacts,
  first: number,
  recording: Omit<Recording, 'seq'>,
): void {
  let seq = first
  if (fact.type === 'tool_input_delta' || recording.draining) {
    for (const text of texts) events.push(recordedAs({ ...fact, text }, seq++, recording))
    return
  }
  const { runId, epoch, at } = recording
  const { type, turn, attempt, part } = fact
  const { v } = eventTraits[type]
  for (const text of texts) {
    events.push(Object.freeze({ runId, seq, epoch, at, v, type, turn, attempt, part, text }))
    seq++
  }
}

/** Two batches, the second of which follows from the first, as one. */
export function joinedBatches(first: EventBatch, { events, refusals, ...second }: EventBatch): EventBatch {
  return {
    ...second,
    events: joinedEvents(first.events, events),
    refusals: [...first.refusals, ...refusals],
  }
}
