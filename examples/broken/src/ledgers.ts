// Four stores, each with one fault: a store that keeps everything in memory, and a line that spoils it.
import { type Ledger, memoryLedger } from '@tallystick/core'

/** Changes how a ledger appends: `whole` appends as it should. */
function spoilAppend(spoil: (whole: Ledger['append'], ledger: Ledger) => Ledger['append']): Ledger {
  const ledger = memoryLedger()
  return { ...ledger, append: spoil((...given) => ledger.append(...given), ledger) }
}

/** Writes no more than two events of a batch. */
export const createDroppingLedger = (): Ledger =>
  spoilAppend((append) => async (runId, expected, events, options) => {
    await append(runId, expected, events.slice(0, 2), options)
    return { seq: expected.expectedSeq + events.length, epoch: expected.epoch }
  })

/** Reads its newest page twice. */
export function createDuplicatingLedger(): Ledger {
  const ledger = memoryLedger()
  return {
    ...ledger,
    async *read(...given) {
      const events = await Array.fromAsync(ledger.read(...given))
      yield* events
      yield* events.slice(1, 2)
    },
  }
}

/** Reads without an order, as a query without `order by`. */
export function createReorderingLedger(): Ledger {
  const ledger = memoryLedger()
  return {
    ...ledger,
    async *read(...given) {
      const events = await Array.fromAsync(ledger.read(...given))
      yield* events.reverse()
    },
  }
}

/** Answers that all is stored, and stores nothing. */
export const createForgettingLedger = (): Ledger =>
  spoilAppend(() => async (_runId, { expectedSeq, epoch }, events) => ({
    seq: expectedSeq + events.length,
    epoch,
  }))
