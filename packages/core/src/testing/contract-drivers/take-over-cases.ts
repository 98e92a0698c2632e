import { everyFact } from '../samples/sample-facts.ts'
import { sampleRunId, stamped } from '../samples/sample-ids.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { requireConflict, requireEqual, requireRefusal } from '../contract/requirement.ts'
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

const start = stamped(run, [everyFact(run).run_started])

/** A take-over raises the epoch of a run first; from then on no other writer can append. */
export const takeOverCases: readonly LedgerContractCase[] = [
  {
    promise: 'taking a run over raises its epoch by one and leaves its seq',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      requireEqual(await ledger.acquire(run), { seq: 1, epoch: 2 }, 'the head after the first take-over')
      requireEqual(await ledger.acquire(run), { seq: 1, epoch: 3 }, 'the head after the second')
      await requireRecord(ledger, start, { epoch: 3 })
    },
  },
  {
    promise: 'the writer before a take-over can append nothing, at a barrier or lazily',
    async run(open) {
      const ledger = await open()
      const old = await startRun(ledger)
      await ledger.acquire(run)
      await requireConflict(appendAt(ledger, old, [saying('late')]), 'epoch')
      await requireConflict(appendAt(ledger, old, [saying('late')], barrier), 'epoch')
      await requireConflict(appendAt(ledger, old, []), 'epoch')
      await requireRecord(ledger, start, { epoch: 2 })
    },
  },
  {
    promise: 'the writer before a take-over takes nothing from the inbox',
    async run(open) {
      const ledger = await open()
      const old = await startRun(ledger)
      await ledger.put(run, steering('k1'))
      await ledger.acquire(run)
      await requireConflict(appendAt(ledger, old, [saying('late')], { consumedInboxKeys: ['k1'] }), 'epoch')
      requireEqual(await ledger.inbox(run), [steering('k1')], 'the inbox')
    },
  },
  {
    promise: 'the new writer appends under its epoch, and the events keep theirs',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      const head = await ledger.acquire(run)
      requireEqual(await appendAt(ledger, head, [saying('a')]), { seq: 2, epoch: 2 }, 'the head')
      const record = [...start, ...stamped(run, [saying('a')], { afterSeq: 1, epoch: 2 })]
      await requireRecord(ledger, record, { epoch: 2 })
    },
  },
  {
    promise: 'of several take-overs at once each gets an epoch of its own, and only the last may append',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      const heads = await Promise.all([ledger.acquire(run), ledger.acquire(run), ledger.acquire(run)])
      const sorted = heads.toSorted((left, right) => left.epoch - right.epoch)
      requireEqual(
        sorted.map(({ epoch }) => epoch),
        [2, 3, 4],
        'the epochs',
      )
      for (const head of sorted.slice(0, 2))
        await requireConflict(appendAt(ledger, head, [saying('late')]), 'epoch')
      await appendAt(ledger, { seq: 1, epoch: 4 }, [saying('a')])
    },
  },
  {
    promise: 'taking over one run leaves the others to their writers',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      const head = await startRun(ledger, otherRun)
      await ledger.acquire(run)
      requireEqual(
        await appendAt(ledger, head, [saying('a')], { runId: otherRun }),
        { seq: 2, epoch: 1 },
        'the head of the other run',
      )
    },
  },
  {
    promise: 'a run that is not there has no head, cannot be taken over, and is not made by trying',
    async run(open) {
      const ledger = await open()
      await startRun(ledger, otherRun)
      const missing = sampleRunId(9)
      const { message } = await requireRefusal(ledger.acquire(missing), 'run_not_found')
      requireEqual(message.includes(missing), true, 'whether the refusal names the run')
      requireEqual((await ledger.head(missing)) ?? null, null, 'the head')
      requireEqual((await collect(ledger.runs())).length, 1, 'the number of runs')
    },
  },
]
