import type { Cause } from '../events/event-parts.ts'
import { type EventOf, eventTraits, type Fact, type RuntimeEvent, deriveCause } from '../events/event.ts'
import type { RunId } from '../values/ids.ts'
import { freezeOwn, omitUndefined } from '../values/json.ts'
import type { Action, Refusal, Rules, Stamp } from './rules.ts'
import { nextAction } from './next-action.ts'
import { decide } from './decide.ts'
import type { Command } from '../events/commands.ts'
import type { Signal } from '../events/signals.ts'
import { audit } from './laws.ts'
import type { RunState } from './state.ts'
import { findCall } from './calls.ts'

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
  /** Time and chance, asked for each message, and once for the controller. */
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
  messages: readonly (Command | Signal)[],
  { writer, stamp, rulesOf = () => ({}), keys = [], draining = false }: AdvanceOptions,
): EventBatch {
  const events: RuntimeEvent[] = []
  let state = before
  const record = (facts: readonly Fact[], at: number, cause: Cause, inboxKey?: string): void => {
    const { runId, epoch } = writer
    for (const fact of facts) {
      const seq = (state?.seq ?? 0) + 1
      const event = toEvent(fact, { runId, epoch, seq, at, cause, inboxKey, draining })
      state = audit(state, event)
      events.push(event)
    }
  }
  const batch = (action: WaitingAction): EventBatch => ({
    events,
    state: state as RunState,
    action,
    refusals,
  })
  const refusals = messages.map((message, place): Refusal | undefined => {
    const now = stamp()
    const decision = decide(state, message, now)
    if ('refused' in decision) return decision.refused
    record(decision.facts, now.at, message.type, keys[place])
    return undefined
  })
  const { at } = stamp()
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (state === undefined) break
    if (draining) return batch({ kind: 'suspend' })
    const action = nextAction(state, at, rulesOf(state.agent))
    if (!('facts' in action)) return batch(action)
    record(action.facts, at, 'controller')
  }
  throw new Error(`The loop controller of run ${writer.runId} did not end within ${MAX_ROUNDS} rounds.`)
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

export function toEvent(fact: Fact, recording: Recording): RuntimeEvent {
  const { runId, seq, epoch, at, cause, inboxKey, draining = false } = recording
  const { v } = eventTraits[fact.type]
  const isUsual = cause === deriveCause(fact)
  if (isUsual && inboxKey === undefined && !draining) return freezeOwn({ runId, seq, epoch, at, v, ...fact })
  const decided = omitUndefined({
    cause: isUsual ? undefined : cause,
    inboxKey,
    draining: draining ? (true as const) : undefined,
  })
  return freezeOwn({ runId, seq, epoch, at, v, ...decided, ...fact })
}

/** Joins two batches, the second of which follows from the first. */
export function joinBatches(first: EventBatch, { events, refusals, ...second }: EventBatch): EventBatch {
  return {
    ...second,
    events: [...first.events, ...events],
    refusals: [...first.refusals, ...refusals],
  }
}

/**
 * How durable the append of events has to be, between two states: a barrier where something follows from one of them that a crash could make
 * untrue. What is appended lazily, a later barrier of the run makes durable, in order.
 */
export function chooseDurability(
  events: readonly RuntimeEvent[],
  { before, after }: { readonly before?: RunState | undefined; readonly after?: RunState | undefined },
): 'barrier' | 'lazy' {
  const needsBarrier = events.some((event) => {
    if (event.type === 'tool_result') return !isHarmlessResult(event, before)
    if (event.type === 'tool_started') return !isHarmlessStart(event, after)
    return eventTraits[event.type].durability === 'barrier'
  })
  return needsBarrier ? 'barrier' : 'lazy'
}

/** A result that a crash may lose leaves its call in doubt: that is harmless only where the tool may run again. */
function isHarmlessResult({ toolCallId }: EventOf<'tool_result'>, before: RunState | undefined): boolean {
  const call = before && findCall(before, toolCallId)
  return call !== undefined && (call.attempts === 0 || call.recovery === 'rerun')
}

/**
 * Law 8: a start that a crash may lose lets its call be started again, or the model be asked again. That is harmless where
 * the recorded tool has no side effect and may run again, and where the start says nothing that is counted or was decided:
 * it is not a further attempt, grants nothing to a child run, hands nothing over, and no person has approved it.
 */
function isHarmlessStart(
  { toolCallId, attempt }: EventOf<'tool_started'>,
  after: RunState | undefined,
): boolean {
  const call = after && findCall(after, toolCallId)
  if (call?.effect !== 'read' || call.recovery !== 'rerun' || attempt > 1) return false
  return call.child === undefined && call.handoff === undefined && call.approvedSeq === undefined
}
