import type { Ledger } from '../../ledger/ledger.ts'
import type { RuntimeEvent } from '../../events/event.ts'
import { everyFact } from '../samples/sample-facts.ts'
import { stamped } from '../samples/sample-ids.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { requireConflict, requireEqual } from '../contract/requirement.ts'
import { appendAt, barrier, requireRecord, run, saying, startRun, steering } from '../contract/scenario.ts'

const start = stamped(run, [everyFact(run).run_started])
const batch = stamped(run, [saying('a'), saying('b')], { afterSeq: 1 })

/** Sends the batch again, as a writer does that never heard whether it was written. */
function sendAgain(ledger: Ledger, events: readonly RuntimeEvent[] = batch): Promise<unknown> {
  return ledger.append(run, { expectedSeq: 1, epoch: 1 }, events, barrier)
}

/** A writer that lost the acknowledgement may append again; another writer cannot pretend to be it. */
export const lostAcknowledgementCases: readonly LedgerContractCase[] = [
  {
    promise: 'the same append again is a lost acknowledgement: it answers the same head and doubles nothing',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      requireEqual(await sendAgain(ledger), { seq: 3, epoch: 1 }, 'the head at first')
      requireEqual(await sendAgain(ledger), { seq: 3, epoch: 1 }, 'the head at the second try')
      await requireRecord(ledger, [...start, ...batch])
    },
  },
  {
    promise: 'the first append of a run again is a lost acknowledgement',
    async run(open) {
      const ledger = await open()
      requireEqual(await startRun(ledger), { seq: 1, epoch: 1 }, 'the head at first')
      requireEqual(await startRun(ledger), { seq: 1, epoch: 1 }, 'the head at the second try')
      await requireRecord(ledger, start)
    },
  },
  {
    promise: 'an append that lies after the head is recognised by its content',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      await sendAgain(ledger)
      await appendAt(ledger, { seq: 3, epoch: 1 }, [saying('c')])
      requireEqual(await sendAgain(ledger), { seq: 3, epoch: 1 }, 'the head after the events that were sent')
      await requireRecord(ledger, [...start, ...batch, ...stamped(run, [saying('c')], { afterSeq: 3 })])
    },
  },
  {
    promise: 'the same seq and epoch with other content is a conflict',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      await sendAgain(ledger)
      await requireConflict(
        sendAgain(ledger, stamped(run, [saying('a'), saying('x')], { afterSeq: 1 })),
        'seq',
      )
      await requireRecord(ledger, [...start, ...batch])
    },
  },
  {
    promise: 'the same content at another time is other content',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      await sendAgain(ledger)
      await requireConflict(
        sendAgain(
          ledger,
          batch.map((event) => ({ ...event, at: event.at + 1 })),
        ),
        'seq',
      )
      await requireRecord(ledger, [...start, ...batch])
    },
  },
  {
    promise: 'an append that is recorded only in part is a conflict',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      await sendAgain(ledger)
      const longer = stamped(run, [saying('a'), saying('b'), saying('c')], { afterSeq: 1 })
      await requireConflict(sendAgain(ledger, longer), 'seq')
      await requireRecord(ledger, [...start, ...batch])
    },
  },
  {
    promise: 'a lost acknowledgement is recognised after a take-over, and tells nothing of the new epoch',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      await sendAgain(ledger)
      await ledger.acquire(run)
      requireEqual(await sendAgain(ledger), { seq: 3, epoch: 1 }, 'the head that the old writer left')
      await requireConflict(appendAt(ledger, { seq: 3, epoch: 1 }, [saying('c')]), 'epoch')
      await requireRecord(ledger, [...start, ...batch], { epoch: 2 })
    },
  },
  {
    promise: 'the same facts signed with a newer epoch are no lost acknowledgement',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      await sendAgain(ledger)
      await ledger.acquire(run)
      await requireConflict(appendAt(ledger, { seq: 1, epoch: 2 }, [saying('a'), saying('b')]), 'seq')
      await requireRecord(ledger, [...start, ...batch], { epoch: 2 })
    },
  },
  {
    promise: 'a lost acknowledgement leaves what it took out of the inbox',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      await ledger.put(run, steering('k1'))
      await ledger.put(run, steering('k2'))
      await appendAt(ledger, head, [saying('a')], { consumedInboxKeys: ['k1'] })
      await appendAt(ledger, head, [saying('a')], { consumedInboxKeys: ['k1'] })
      requireEqual(await ledger.inbox(run), [steering('k2')], 'the inbox')
    },
  },
]
