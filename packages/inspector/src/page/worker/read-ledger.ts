import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import type { RunModel } from './run-model.ts'

/** Runs that the page has, as far as functions over a ledger read it. */
export function createReadLedger(...runs: readonly RunModel[]): Ledger {
  const eventsOf = (runId: RunId): readonly RuntimeEvent[] =>
    runs.find(({ events }) => events[0]?.runId === runId)?.events ?? []
  const ledger: Pick<Ledger, 'read' | 'head'> = {
    async *read(runId, { fromSeq = 1, toSeq = Infinity } = {}) {
      const events = eventsOf(runId)
      for (let at = fromSeq; at <= Math.min(toSeq, events.length); at++) yield events[at - 1]!
    },
    async head(runId) {
      const last = eventsOf(runId).at(-1)
      return last && { seq: last.seq, epoch: last.epoch }
    },
  }
  return ledger as Ledger
}
