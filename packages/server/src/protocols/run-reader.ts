import type { Ledger, RunState, RuntimeEvent } from '@tallystick/core'
import { omitUndefined, withChildren } from '@tallystick/core/kit'
import { callsAwaitingChild } from '@tallystick/core/machine'
import { RunMoves, outOf, type MoveTable, type RunMove, type RunWaits } from './run-moves.ts'

/**
 * Reads the events of a run, and returns what a protocol sends after one of them (0: everything). It reads the events
 * up to there again, so that the protocol knows what it has sent.
 */
export class RunReader<Out> {
  readonly #moves = new RunMoves()
  readonly #ledger: Ledger
  readonly #after: number
  readonly #table: MoveTable<Out>
  #isOpen: boolean

  constructor(ledger: Ledger, after: number, table: MoveTable<Out>) {
    this.#ledger = ledger
    this.#after = after
    this.#table = table
    this.#isOpen = after === 0
  }

  /** Returns what the next event adds. */
  read(event: RuntimeEvent): readonly Out[] {
    if (event.seq > this.#after) return [...this.#opening(), ...this.#outs(this.#moves.next(event))]
    this.#outs(this.#moves.next(event))
    return []
  }

  /** Returns what comes last after the events so far, if the run waits for a command there. */
  async endAtWait(): Promise<readonly Out[] | undefined> {
    const { state, isWaiting } = this.#moves
    if (state === undefined || !isWaiting) return undefined
    const waits = await waitsOf(this.#ledger, state)
    const isHeld = waits.approvals.length > 0 || waits.deferred.length > 0 || waits.limit !== undefined
    return isHeld ? [...this.#opening(), ...this.#outs(this.#moves.movesAtWait(waits))] : undefined
  }

  /** Returns what a stream begins with if it continues an earlier one. */
  #opening(): readonly Out[] {
    if (this.#isOpen) return []
    this.#isOpen = true
    return this.#outs(this.#moves.reopen())
  }

  #outs(moves: readonly RunMove[]): readonly Out[] {
    return moves.flatMap((move) => outOf(this.#table, move))
  }
}

/** Returns what a run waits for: nothing while a child run is under way. */
async function waitsOf(ledger: Ledger, state: RunState): Promise<RunWaits> {
  const { pendingApprovals: approvals, deferredCalls, limit } = await withChildren(state, ledger)
  const working = new Set<string>(callsAwaitingChild(state).map(({ toolCallId }) => toolCallId))
  const deferred = deferredCalls.filter(({ toolCallId }) => !working.has(toolCallId))
  return { approvals, deferred, ...omitUndefined({ limit }) }
}
