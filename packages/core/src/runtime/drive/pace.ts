import { eventTraits } from '../../events/event.ts'
import type { EventBatch } from '../../machine/advance.ts'
import type { RunState } from '../../machine/state.ts'
import { summaryOf } from '../../machine/calls.ts'
import type { Clock } from '../../values/host.ts'
import type { MailKind } from './mailbox.ts'

/** A ledger that asks for more, in milliseconds, gets this. */
const MAX_DELTA_DELAY_MS = 1_000

/** How long the ending of one of many calls may wait for others, in milliseconds. */
const ENDING_DELAY_MS = 1

/** So many calls that run at once are many. */
const MANY_CALLS = 32

/**
 * What may wait for more of its kind, and until when, so that one append records both: deltas of a reply after others,
 * where the ledger asks for it, and endings of calls after others, as long as many calls run.
 */
export class Pace {
  /** What may wait. */
  kind: MailKind = 'delta'
  /** Until when; a time that has passed where nothing may. */
  until: number = -Infinity
  /** How much of it is all that can come, so that nothing is left to wait for. */
  most: number = Infinity

  /** Takes what was appended: what follows it waits only where it is of the same kind. */
  appended({ events, state }: EventBatch, clock: Pick<Clock, 'now'>, deltaDelayMs = 0): void {
    this.until = -Infinity
    if (deltaDelayMs > 0 && events.every(({ type }) => eventTraits[type].retention === 'deltas'))
      return this.#wait('delta', clock.now() + Math.min(deltaDelayMs, MAX_DELTA_DELAY_MS))
    const running = events.every(({ type }) => type === 'tool_result') ? runningAlone(state) : 0
    // From when it was decided: what came while a slow store wrote it has waited for others already.
    if (running >= MANY_CALLS) this.#wait('ending', state.at + ENDING_DELAY_MS, running)
  }

  #wait(kind: MailKind, until: number, most = Infinity): void {
    this.kind = kind
    this.until = until
    this.most = most
  }
}

/** How many calls run where none of the others waits for anything: nothing follows from an ending but its record. */
function runningAlone(state: RunState): number {
  if (state.phase !== 'executing') return 0
  const { started, settled } = summaryOf(state.calls).counts
  return started + settled === state.calls.length ? started : 0
}
