import type { Ledger } from '../../ledger/ledger.ts'
import type { RunId } from '../../values/ids.ts'
import { everyFact } from '../samples/sample-facts.ts'
import { stamped } from '../samples/sample-ids.ts'
import { hinted } from './change-cases.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { requireConflict, requireEqual } from '../contract/requirement.ts'
import {
  appendAt,
  barrier,
  collect,
  otherRun,
  requireRecord,
  run,
  saying,
  startRun,
  steering,
} from '../contract/scenario.ts'
import { tailUntil } from '../contract/tail-until.ts'

const facts = everyFact(run)

/** Two ledgers over one store, as two processes have them. */
export const sharedCases: readonly LedgerContractCase[] = [
  {
    promise: 'what one ledger appended the other reads',
    needs: 'shared',
    async run(open) {
      const [one, other] = [await open(), await open()]
      await startRun(one, run, [saying('a')])
      await requireRecord(other, stamped(run, [facts.run_started, saying('a')]))
      requireEqual((await collect(other.runs())).length, 1, 'the number of runs')
      const record = stamped(run, [facts.run_started, saying('a')])
      requireEqual(await collect(other.find({ turn: 1 })), record.slice(1), 'what is found of turn 1')
    },
  },
  {
    promise: 'of two ledgers that append at the same head one is refused',
    needs: 'shared',
    async run(open) {
      const [one, other] = [await open(), await open()]
      const head = await startRun(one)
      await appendAt(one, head, [saying('one')], barrier)
      await requireConflict(appendAt(other, head, [saying('other')], barrier), 'seq')
      await requireRecord(other, stamped(run, [facts.run_started, saying('one')]))
    },
  },
  {
    promise: 'a take-over through one ledger shuts out the writer at the other',
    needs: 'shared',
    async run(open) {
      const [one, other] = [await open(), await open()]
      const old = await startRun(one)
      const head = await other.acquire(run)
      requireEqual(head, { seq: 1, epoch: 2 }, 'the head of the new writer')
      await requireConflict(appendAt(one, old, [saying('late')]), 'epoch')
      requireEqual(await appendAt(other, head, [saying('a')]), { seq: 2, epoch: 2 }, 'the head of its append')
    },
  },
  {
    promise: 'a command put through one ledger reaches the inbox of the other, once',
    needs: 'shared',
    async run(open) {
      const [one, other] = [await open(), await open()]
      const head = await startRun(one)
      requireEqual(await other.put(run, steering('k1')), true, 'the first answer')
      requireEqual(await one.put(run, steering('k1')), false, 'the answer of the other ledger')
      await appendAt(one, head, [saying('a')], { consumedInboxKeys: ['k1'] })
      requireEqual(await other.inbox(run), [], 'the inbox')
      requireEqual(await other.put(run, steering('k1')), false, 'the answer after it was taken')
    },
  },
  {
    promise: 'a command put through one ledger is hinted at by the other',
    needs: 'shared',
    async run(open) {
      const [one, other] = [await open(), await open()]
      await startRun(one)
      await hinted(
        one,
        () => other.put(run, steering('k1')),
        async () => (await one.inbox(run)).length === 1,
      )
    },
  },
  {
    promise: 'an append through one ledger is hinted at by the other',
    needs: 'shared',
    async run(open) {
      const [one, other] = [await open(), await open()]
      const head = await startRun(one)
      await hinted(
        other,
        () => appendAt(one, head, [saying('a')]),
        async () => (await other.head(run))?.seq === 2,
      )
    },
  },
  {
    promise: 'what one ledger appended the tail of the other yields, also after a cursor of the first',
    needs: 'shared',
    async run(open) {
      const [one, other] = [await open(), await open()]
      const head = await startRun(one)
      const [started] = await tailUntil(one, 1)
      await appendAt(one, head, [saying('a')], barrier)
      const [next] = await tailUntil(other, 1, started?.cursor)
      requireEqual(next?.event, stamped(run, [saying('a')], { afterSeq: 1 })[0], 'the event')
      requireEqual(await collect(other.tail()), await collect(one.tail()), 'the tail of the other')
    },
  },
  {
    promise: 'ledgers that append at once leave one order, the same for both, without a gap or a repeat',
    needs: 'shared',
    async run(open) {
      const [one, other] = [await open(), await open()]
      await Promise.all([startRun(one, run), startRun(other, otherRun)])
      const grow = async (ledger: Ledger, runId: RunId): Promise<void> => {
        for (let seq = 1; seq < 60; seq++)
          await appendAt(ledger, { seq, epoch: 1 }, [saying(`${seq}`)], { runId })
      }
      const [seen] = await Promise.all([tailUntil(one, 120), grow(one, run), grow(other, otherRun)])
      for (const runId of [run, otherRun]) {
        const seqs = seen.filter(({ event }) => event.runId === runId).map(({ event }) => event.seq)
        const gapless = Array.from({ length: 60 }, (_, index) => index + 1)
        requireEqual(seqs, gapless, `the seqs of run ${runId} in the tail`)
      }
      requireEqual(await collect(other.tail()), seen, 'the tail of the other')
    },
  },
  {
    promise: 'a follower of every run is hinted at what another ledger appended',
    needs: 'shared',
    async run(open) {
      const [one, other] = [await open(), await open()]
      await startRun(one)
      await hinted(
        other,
        () => startRun(one, otherRun),
        async () => (await other.head(otherRun)) !== undefined,
        other.changes(),
      )
    },
  },
  {
    promise: 'closing one ledger leaves the other open',
    needs: 'shared',
    async run(open) {
      const [one, other] = [await open(), await open()]
      const head = await startRun(one)
      await one.close()
      requireEqual(await appendAt(other, head, [saying('a')], barrier), { seq: 2, epoch: 1 }, 'the head')
      await requireRecord(other, stamped(run, [facts.run_started, saying('a')]))
    },
  },
]
