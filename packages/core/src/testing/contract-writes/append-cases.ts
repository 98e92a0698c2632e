import { LedgerConflictError } from '../../values/errors.ts'
import { everyFact } from '../samples/sample-facts.ts'
import { stamped } from '../samples/sample-ids.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { require, requireConflict, requireEqual } from '../contract/requirement.ts'
import {
  appendAt,
  barrier,
  collect,
  lazy,
  requireRecord,
  run,
  saying,
  startRun,
} from '../contract/scenario.ts'

const started = stamped(run, [everyFact(run).run_started])

/** One atomic compare-and-swap: all events or none. */
export const appendCases: readonly LedgerContractCase[] = [
  {
    promise: 'the first append makes the run and answers its head',
    async run(open) {
      const ledger = await open()
      requireEqual(
        await ledger.append(run, { expectedSeq: 0, epoch: 1 }, started, barrier),
        { seq: 1, epoch: 1 },
        'the head',
      )
      await requireRecord(ledger, started)
    },
  },
  {
    promise: 'an append moves the head by the number of its events',
    async run(open) {
      const ledger = await open()
      const first = await startRun(ledger)
      const second = await appendAt(ledger, first, [saying('a'), saying('b'), saying('c')])
      requireEqual(second, { seq: 4, epoch: 1 }, 'the head after three more events')
      requireEqual(
        await appendAt(ledger, second, [saying('d')]),
        { seq: 5, epoch: 1 },
        'the head after one more',
      )
      requireEqual(await ledger.head(run), { seq: 5, epoch: 1 }, 'the head as it is read')
    },
  },
  {
    promise:
      'appends of a run that are begun before the first of them is answered are carried out in their order',
    async run(open) {
      const ledger = await open()
      const start = startRun(ledger)
      const others = [1, 2, 3].map((seq) => appendAt(ledger, { seq, epoch: 1 }, [saying(`after ${seq}`)]))
      requireEqual(
        (await Promise.all([start, ...others])).map(({ seq }) => seq),
        [1, 2, 3, 4],
        'the heads that the appends answered',
      )
      requireEqual((await collect(ledger.read(run))).length, 4, 'the number of events')
    },
  },
  {
    promise: 'what was appended lazily is read at once',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      await appendAt(ledger, head, [saying('a')], lazy)
      requireEqual((await collect(ledger.read(run))).length, 2, 'the number of events')
    },
  },
  {
    promise: 'an append after the head is a seq conflict and writes nothing',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger, run, [saying('a'), saying('b')])
      const before = await collect(ledger.read(run))
      await requireConflict(appendAt(ledger, { ...head, seq: 1 }, [saying('other')]), 'seq')
      await requireRecord(ledger, before)
    },
  },
  {
    promise: 'an append ahead of the head is a seq conflict and writes nothing',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      await requireConflict(appendAt(ledger, { ...head, seq: 2 }, [saying('a')]), 'seq')
      await requireRecord(ledger, started)
    },
  },
  {
    promise: 'an append of another epoch is an epoch conflict and writes nothing',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      await requireConflict(appendAt(ledger, { ...head, epoch: 2 }, [saying('a')]), 'epoch')
      await requireRecord(ledger, started)
    },
  },
  {
    promise: 'a first append that expects another head than seq 0 and epoch 1 is a conflict and makes no run',
    async run(open) {
      const ledger = await open()
      await requireConflict(appendAt(ledger, { seq: 3, epoch: 1 }, [saying('a')]), 'seq')
      await requireConflict(appendAt(ledger, { seq: 0, epoch: 2 }, [saying('a')]), 'epoch')
      requireEqual((await ledger.head(run)) ?? null, null, 'the head of a run that is not there')
      requireEqual(await collect(ledger.runs()), [], 'the runs')
    },
  },
  {
    promise: 'of two appends at once with the same expected head, one is written and one is refused',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      const racing = [appendAt(ledger, head, [saying('left')]), appendAt(ledger, head, [saying('right')])]
      const endings = await Promise.allSettled(racing)
      requireEqual(endings.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'], 'the endings')
      const refused = endings.find((ending) => ending.status === 'rejected')
      require(refused?.reason instanceof
        LedgerConflictError, 'the loser of a race gets no LedgerConflictError')
      const winner = endings[0]?.status === 'fulfilled' ? 'left' : 'right'
      await requireRecord(ledger, [...started, ...stamped(run, [saying(winner)], { afterSeq: 1 })])
    },
  },
  {
    promise: 'two first appends at once make one run',
    async run(open) {
      const ledger = await open()
      const facts = everyFact(run)
      const racing = [
        appendAt(ledger, { seq: 0, epoch: 1 }, [facts.run_started]),
        appendAt(ledger, { seq: 0, epoch: 1 }, [saying('no start')]),
      ]
      const endings = await Promise.allSettled(racing)
      requireEqual(endings.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'], 'the endings')
      requireEqual((await collect(ledger.runs())).length, 1, 'the number of runs')
      requireEqual(await ledger.head(run), { seq: 1, epoch: 1 }, 'the head')
    },
  },
  {
    promise: 'an append of no events answers the head and writes nothing',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      requireEqual(await appendAt(ledger, head, []), head, 'the head')
      requireEqual(await appendAt(ledger, head, [], barrier), head, 'the head at a barrier')
      await requireRecord(ledger, started)
    },
  },
  {
    promise: 'an append of no events checks the head all the same',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      await requireConflict(appendAt(ledger, { ...head, seq: 0 }, []), 'seq')
      await requireConflict(appendAt(ledger, { ...head, epoch: 2 }, []), 'epoch')
    },
  },
  {
    promise: 'an append of no events makes no run',
    async run(open) {
      const ledger = await open()
      requireEqual(await appendAt(ledger, { seq: 0, epoch: 1 }, []), { seq: 0, epoch: 1 }, 'the head')
      requireEqual((await ledger.head(run)) ?? null, null, 'the head of a run that is not there')
      requireEqual(await collect(ledger.runs()), [], 'the runs')
    },
  },
  {
    promise: 'a batch of a thousand events keeps its order',
    async run(open) {
      const ledger = await open()
      const facts = Array.from({ length: 1000 }, (_, index) => saying(`delta ${index}`))
      requireEqual(await appendAt(ledger, await startRun(ledger), facts), { seq: 1001, epoch: 1 }, 'the head')
      await requireRecord(ledger, [...started, ...stamped(run, facts, { afterSeq: 1 })])
    },
  },
]
