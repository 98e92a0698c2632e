import type { Ledger, RunState, RuntimeEvent } from '@tallystick/core'
import { omitUndefined, withChildren } from '@tallystick/core/kit'
import { callsAwaitingChild } from '@tallystick/core/machine'
import { RunMoves, outOf, type MoveTable, type RunMove, type RunWaits } from './run-moves.ts'

/** Where a stream begins in a run. */
export type RunPlace =
  /** After an event; 0 for all of the run. */
  | { readonly after: number }
  /** Where the model is shown a message of the user. */
  | { readonly message: string }
  /** Where an answer of the run begins, counted from 1. */
  | { readonly answer: number }

/**
 * Reads the events of a run, from its first, and returns what a protocol sends from a place on. It reads the events
 * before that place, too, so that the protocol knows what other streams have sent.
 */
export class RunReader<Out> {
  readonly #moves = new RunMoves()
  readonly #ledger: Ledger
  readonly #place: RunPlace
  readonly #table: MoveTable<Out>
  /** The answer that the stream is about, once it has begun. */
  #answer: number | undefined
  #isOver = false
  #isWaiting = false

  constructor(ledger: Ledger, place: RunPlace, table: MoveTable<Out>) {
    this.#ledger = ledger
    this.#place = place
    this.#table = table
    if ('after' in place && place.after === 0) this.#answer = 1
  }

  /** Whether its place was reached. */
  get hasBegun(): boolean {
    return this.#answer !== undefined
  }

  /** Whether nothing follows: the run has ended, or answers a later message now. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether it has ended because the run waits for a command. */
  get isWaiting(): boolean {
    return this.#isWaiting
  }

  /** Returns what the next event adds. */
  read(event: RuntimeEvent): readonly Out[] {
    const opening = 'after' in this.#place && event.seq > this.#place.after ? this.#opening() : []
    const moves = this.#moves.next(event)
    const outs = this.#outs(moves)
    this.#isOver = event.type === 'run_finished'
    if (this.#answer === undefined) return this.#hasReached(moves) ? this.#opening() : []
    if (this.#moves.answer === this.#answer || this.#table.answer_ended === undefined)
      return [...opening, ...outs]
    this.#isOver = true
    return [...opening, ...outs, ...this.#ofState((state) => this.#endOfAnswer(state))]
  }

  /** Returns what comes last after the events so far, if the run waits for a command there. */
  async endAtWait(): Promise<readonly Out[] | undefined> {
    const { state, isWaiting } = this.#moves
    if (state === undefined || !isWaiting) return undefined
    const waits = await waitsOf(this.#ledger, state)
    const isHeld = waits.approvals.length > 0 || waits.deferred.length > 0 || waits.limit !== undefined
    if (!isHeld) return undefined
    this.#isOver = true
    this.#isWaiting = true
    if ('message' in this.#place && !this.hasBegun)
      return this.#outs([{ type: 'message_waits', state, waits }])
    return [...this.#opening(), ...this.#outs(this.#moves.movesAtWait(waits))]
  }

  #hasReached(moves: readonly RunMove[]): boolean {
    const place = this.#place
    if ('answer' in place) return this.#moves.answer >= place.answer
    if (!('message' in place)) return false
    return moves.some((move) => move.type === 'input_taken' && move.messageId === place.message)
  }

  /** Returns what a stream begins with if it continues an earlier one. */
  #opening(): readonly Out[] {
    if (this.hasBegun) return []
    this.#answer = this.#moves.answer
    return this.#outs(this.#moves.reopen())
  }

  #endOfAnswer(state: RunState): RunMove {
    return { type: 'answer_ended', state, answer: this.#answer ?? 1 }
  }

  #ofState(moveOf: (state: RunState) => RunMove): readonly Out[] {
    const { state } = this.#moves
    return state ? this.#outs([moveOf(state)]) : []
  }

  #outs(moves: readonly RunMove[]): readonly Out[] {
    return moves.flatMap((move) => outOf(this.#table, move))
  }
}

/** Returns what a run waits for: nothing while a child run is under way. */
export async function waitsOf(ledger: Ledger, state: RunState): Promise<RunWaits> {
  const { pendingApprovals: approvals, deferredCalls, limit } = await withChildren(state, ledger)
  const working = new Set<string>(callsAwaitingChild(state).map(({ toolCallId }) => toolCallId))
  const deferred = deferredCalls.filter(({ toolCallId }) => !working.has(toolCallId))
  return { approvals, deferred, ...omitUndefined({ limit }) }
}
