import type { Cause } from '../vocabulary/events/cause.ts'
import type { Command } from '../vocabulary/events/command.ts'
import { eventTraits, usualCause } from '../vocabulary/events/event-traits.ts'
import type { Fact, RuntimeEvent } from '../vocabulary/events/event.ts'
import type { RunId } from '../vocabulary/values/ids.ts'
import { omitUndefined } from '../vocabulary/values/omit-undefined.ts'
import { deepFreeze } from '../vocabulary/values/deep-freeze.ts'
import type { Signal } from '../vocabulary/signals/signal.ts'
import type { Action } from './state/action.ts'
import { nextAction } from './next/next-action.ts'
import { decide } from './decide/decide.ts'
import type { Refusal, Stamp } from './state/decision.ts'
import { audit } from './laws/invariants.ts'
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
  /** Time and chance, asked for each message and each round. */
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
    for (const fact of facts) {
      const position = { ...writer, seq: (state?.seq ?? 0) + 1, at }
      const event = eventOf(fact, { ...position, cause, draining, ...omitUndefined({ inboxKey }) })
      state = audit(state, event)
      events.push(event)
    }
  }
  const refusals = messages.map((message, index) => {
    const now = stamp()
    const decision = decide(state, message, now)
    if ('refused' in decision) return decision.refused
    record(decision.facts, now.at, message.type, keys[index])
    return undefined
  })
  for (let round = 0; round < MAX_ROUNDS; round++) {
    if (state === undefined) break
    if (draining) return { events, state, action: { kind: 'suspend' }, refusals }
    const { at } = stamp()
    const action = nextAction(state, at, rulesOf(state.agent))
    if (!('facts' in action)) return { events, state, action, refusals }
    record(action.facts, at, 'controller')
  }
  throw new Error(
    `The loop controller of run ${writer.runId} did not come to an end in ${MAX_ROUNDS} rounds.`,
  )
}

/** Who records a fact, where, when, and what it follows from. */
export interface Recording extends Writer {
  readonly seq: number
  /** Milliseconds since 1970 UTC. */
  readonly at: number
  readonly cause: Cause
  readonly draining?: boolean
  readonly inboxKey?: string
}

/** A fact as it is recorded. */
export function eventOf(
  fact: Fact,
  { runId, seq, epoch, at, cause, inboxKey, draining = false }: Recording,
): RuntimeEvent {
  const decided = omitUndefined({
    cause: cause === usualCause(fact) ? undefined : cause,
    inboxKey,
    draining: draining ? (true as const) : undefined,
  })
  return deepFreeze({ runId, seq, epoch, at, v: eventTraits[fact.type].v, ...decided, ...fact })
}
