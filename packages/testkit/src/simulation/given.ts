import type { RunState, RuntimeEvent } from '@tallystick/core'
import {
  eventType,
  isOutsideCause,
  isSignal,
  omitUndefined,
  option,
  type Schema,
  type OrUndefined,
  type Refusal,
  requireOptions,
  type Stamp,
} from '@tallystick/core/internal'
import { type Action, decide, type Decision, evolve, nextAction } from '@tallystick/core/machine'
import { toCanonicalJson, type Command, type Fact, type Json, type Signal } from '@tallystick/core/vocabulary'
import { sampleRunId, stampFacts } from '../samples/values.ts'

const { anyObject, fields, listOf, maybe, numberFrom, valueThat, placeFault } = option

/** A fact or an event, by its type. */
const knownFact: Schema = (value) => anyObject(value) ?? placeFault('type', eventType((value as Fact).type))

const knownMessage: Schema = valueThat("a command or a signal, such as { type: 'cancel' }", (value) => {
  const message = Object(value) as Command | Signal
  const { type } = message
  return type === 'start' || type === 'resume' || isOutsideCause(type) || isSignal(message)
})

const partialStamp = fields<OrUndefined<Partial<Stamp>>>({
  at: maybe(numberFrom(0)),
  random: maybe(numberFrom(0)),
})

/** A record, on which messages are tried. */
export interface Given {
  /** The state that the record folds to; `undefined` if nothing is on record. */
  readonly state: RunState | undefined
  /** Lets the machine decide about a message. `stamp` is what it may use of the world: the last event's time, and 0. */
  when(message: Command | Signal, stamp?: OrUndefined<Partial<Stamp>>): When
  /** Returns the next action of the controller, `afterMs` after the last event. */
  pending(afterMs?: number): Action
}

/** A decision, and checks of it. A check that fails throws an error that shows both sides. */
export interface When {
  /** The facts that follow, and no others; none, when the message changes nothing. */
  then(facts: readonly Fact[]): void
  thenRefused(code: Refusal['code']): void
  /** The decision itself, for checks of other kinds. */
  readonly decision: Decision
}

/**
 * Reads as a page of the ledger: given these events, when that arrives, then those facts follow.
 *
 * ```ts
 * given(events).when({ type: 'cancel' }).then([{ type: 'cancel_requested', turn: 1 }])
 * ```
 *
 * Bare facts are numbered, dated and signed on the way, as events of `sampleRunId(1)`.
 */
export function given(past: readonly (Fact | RuntimeEvent)[]): Given {
  requireOptions('given', listOf(knownFact), past, 'events')
  const events = past.every((event): event is RuntimeEvent => 'seq' in event)
    ? past
    : stampFacts(sampleRunId(1), past)
  const state = events.reduce<RunState | undefined>(evolve, undefined)
  const at = events.at(-1)?.at ?? 0
  return {
    state,
    when(message, stamp = {}) {
      requireOptions('when of given', knownMessage, message, 'the message')
      requireOptions('when of given', partialStamp, stamp, 'the stamp')
      return whenDecided(decide(state, message, { at, random: 0, ...omitUndefined({ ...stamp }) }))
    },
    pending(afterMs = 0) {
      requireOptions('pending of given', numberFrom(0), afterMs, 'afterMs')
      if (state === undefined) throw new Error('A run that does not exist has no next action.')
      return nextAction(state, at + afterMs)
    },
  }
}

function whenDecided(decision: Decision): When {
  return {
    decision,
    // oxlint-disable-next-line unicorn/no-thenable -- it reads as given, when, then; no test awaits it
    then: (facts) => requireSame('facts' in decision ? decision.facts : decision, facts),
    thenRefused: (code) => requireSame('refused' in decision ? decision.refused.code : decision, code),
  }
}

function requireSame(actual: unknown, expected: unknown): void {
  const [found, wanted] = [actual, expected].map((value) => toCanonicalJson(value as Json))
  if (found === wanted) return
  throw Object.assign(new Error(`Decided: ${found}. Expected: ${wanted}.`), { actual, expected })
}
