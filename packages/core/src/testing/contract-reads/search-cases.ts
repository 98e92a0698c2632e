import type { Ledger } from '../../ledger/ledger.ts'
import type { RuntimeEvent } from '../../events/event.ts'
import type { RunId } from '../../values/ids.ts'
import { everyFact } from '../samples/sample-facts.ts'
import { stamped } from '../samples/sample-ids.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { require, requireEqual } from '../contract/requirement.ts'
import { appendAt, collect, otherRun, run, saying, startRun } from '../contract/scenario.ts'

const facts = Array.from({ length: 9 }, (_, index) => saying(`delta ${index}`))

function tenOf(runId: RunId): readonly RuntimeEvent[] {
  return stamped(runId, [everyFact(runId).run_started, ...facts])
}

async function twoRuns(ledger: Ledger): Promise<readonly RuntimeEvent[]> {
  await startRun(ledger, run, facts)
  await startRun(ledger, otherRun, facts)
  return [...tenOf(run), ...tenOf(otherRun)]
}

/** Searches while others write, and beside each other. */
export const searchCases: readonly LedgerContractCase[] = [
  {
    promise: 'a search that is stopped half-way leaves the ledger free to append',
    async run(open) {
      const ledger = await open()
      await twoRuns(ledger)
      for await (const event of ledger.find()) if (event.seq === 3) break
      const head = await appendAt(ledger, { seq: 10, epoch: 1 }, [saying('k')])
      requireEqual(head, { seq: 11, epoch: 1 }, 'the head')
    },
  },
  {
    promise: 'a search ends although as much is appended as it finds, and finds all that stood before',
    async run(open) {
      const ledger = await open()
      await startRun(ledger, otherRun, facts)
      // More than a store reads at once, so that it meets what was appended meanwhile.
      await startRun(
        ledger,
        run,
        Array.from({ length: 400 }, (_, index) => saying(`${index}`)),
      )
      for (const query of [{}, { types: ['assistant_text_delta'] as const }]) {
        const found: RuntimeEvent[] = []
        let head = (await ledger.head(run)) ?? { seq: 0, epoch: 1 }
        const existing = await collect(ledger.find(query))
        for await (const event of ledger.find(query)) {
          found.push(event)
          require(found.length < 5000, 'a search has no end while it is appended to')
          head = await appendAt(ledger, head, [saying(`beside ${found.length}`)])
        }
        requireEqual(found.slice(0, existing.length), existing, 'what was found of what stood before')
        const seqs = found.filter(({ runId }) => runId === run).map(({ seq }) => seq)
        requireEqual(
          seqs,
          seqs.toSorted((left, right) => left - right),
          'the order of what was found',
        )
        requireEqual(new Set(seqs).size, seqs.length, 'the number of different events')
      }
      requireEqual((await collect(ledger.find({ runId: otherRun }))).length, 10, 'the other run')
    },
  },
  {
    promise:
      'a search misses no event of a run in front of one that it finds, while runs are appended to at once',
    async run(open) {
      const ledger = await open()
      await twoRuns(ledger)
      const grow = async (runId: RunId): Promise<void> => {
        for (let seq = 10; seq < 40; seq++)
          await appendAt(ledger, { seq, epoch: 1 }, [saying('x')], { runId })
      }
      const growth = { isOver: false }
      const grown = Promise.allSettled([grow(run), grow(otherRun)]).finally(() => (growth.isOver = true))
      while (!growth.isOver) {
        const found = await collect(ledger.find())
        for (const runId of [run, otherRun]) {
          const seqs = found.filter((event) => event.runId === runId).map(({ seq }) => seq)
          const gapless = seqs.map((_, index) => index + 1)
          requireEqual(seqs, gapless, `the seqs of run ${runId}`)
          require(seqs.length >= 10, 'events that stood before a search are not found by it')
        }
      }
      await grown
      requireEqual((await collect(ledger.find())).length, 80, 'the number of events')
    },
  },
  {
    promise: 'the order of a search is the same at every look, whatever else was asked',
    async run(open) {
      const ledger = await open()
      await Promise.all([startRun(ledger, run), startRun(ledger, otherRun)])
      const grow = async (runId: RunId): Promise<void> => {
        for (let seq = 1; seq < 20; seq++) await appendAt(ledger, { seq, epoch: 1 }, [saying('x')], { runId })
      }
      await Promise.all([grow(run), grow(otherRun)])
      const all = await collect(ledger.find())
      const types = ['assistant_text_delta', 'run_started'] as const
      requireEqual(await collect(ledger.find()), all, 'the second look')
      requireEqual(await collect(ledger.find({ types })), all, 'a look by types')
      requireEqual(await collect(ledger.find({ fromAt: 0 })), all, 'a look by time')
      requireEqual(all.length, 40, 'the number of events')
    },
  },
  {
    promise: 'searches at once do not disturb each other',
    async run(open) {
      const ledger = await open()
      const all = await twoRuns(ledger)
      const looks = [ledger.find(), ledger.find({ runId: run }), ledger.find({ runId: otherRun })]
      const [whole, left, right] = await Promise.all(looks.map(collect))
      requireEqual(whole, all, 'everything')
      requireEqual(left, tenOf(run), 'the one run')
      requireEqual(right, tenOf(otherRun), 'the other run')
    },
  },
]
