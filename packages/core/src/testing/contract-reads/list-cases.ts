import type { Ledger, RunFilter } from '../../ledger/ledger.ts'
import type { RunId } from '../../values/ids.ts'
import { everyFact } from '../samples/sample-facts.ts'
import { sampleRunId, stamped } from '../samples/sample-ids.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { requireEqual, requireRefusal } from '../contract/requirement.ts'
import { barrier, collect, startRun } from '../contract/scenario.ts'

async function startInSession(ledger: Ledger, runId: RunId, sessionId: string, place: number): Promise<void> {
  const started = { ...everyFact(runId).run_started, sessionId, sessionPlace: place }
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, stamped(runId, [started]), barrier)
}

/** The ordinals of the runs of a list. */
async function listed(ledger: Ledger, filter: RunFilter): Promise<readonly number[]> {
  const runs = await collect(ledger.runs(filter))
  return runs.map(({ runId }) => Number.parseInt(runId.slice(-12), 16))
}

/** Pages of the list of runs. */
export const listCases: readonly LedgerContractCase[] = [
  {
    promise: 'a limit cuts the list of runs short',
    async run(open) {
      const ledger = await open()
      for (const ordinal of [5, 3, 8]) await startRun(ledger, sampleRunId(ordinal))
      requireEqual(await listed(ledger, { limit: 2 }), [8, 3], 'the first two')
      requireEqual(await listed(ledger, { limit: 9 }), [8, 3, 5], 'the first nine')
      requireEqual(await listed(ledger, { limit: 0 }), [], 'the first none')
    },
  },
  {
    promise: 'the last run of a page begins the next, and runs that are made meanwhile move no page',
    async run(open) {
      const ledger = await open()
      for (const ordinal of [5, 3, 8, 1]) await startRun(ledger, sampleRunId(ordinal))
      requireEqual(await listed(ledger, { limit: 2 }), [1, 8], 'the first page')
      await startRun(ledger, sampleRunId(9))
      requireEqual(await listed(ledger, { before: sampleRunId(8), limit: 1 }), [3], 'the second page')
      requireEqual(await listed(ledger, { before: sampleRunId(3) }), [5], 'the rest')
      requireEqual(await listed(ledger, { before: sampleRunId(5), limit: 2 }), [], 'after the last')
    },
  },
  {
    promise:
      'the runs of a session are listed by place, whatever the order in which they were made, in pages too',
    async run(open) {
      const ledger = await open()
      for (const [ordinal, place] of [
        [1, 2],
        [2, 1],
        [3, 4],
        [4, 3],
      ] as const) {
        await startInSession(ledger, sampleRunId(ordinal), 'a', place)
        await startInSession(ledger, sampleRunId(ordinal + 10), 'b', place)
      }
      const sessionId = 'a'
      requireEqual(await listed(ledger, { sessionId }), [3, 4, 1, 2], 'the session')
      requireEqual(await listed(ledger, { sessionId, limit: 2 }), [3, 4], 'the first page')
      requireEqual(
        await listed(ledger, { sessionId, before: sampleRunId(4), limit: 2 }),
        [1, 2],
        'the second page',
      )
    },
  },
  {
    promise: 'a page that is to begin after a run that is not in the list is refused',
    async run(open) {
      const ledger = await open()
      await startInSession(ledger, sampleRunId(1), 'a', 1)
      await startInSession(ledger, sampleRunId(2), 'b', 1)
      await startRun(ledger, sampleRunId(3))
      for (const [filter, missing] of [
        [{}, 9],
        [{ sessionId: 'a' }, 9],
        [{ sessionId: 'a' }, 2],
        [{ sessionId: 'a' }, 3],
        [{ sessionId: 'c' }, 1],
      ] as const) {
        await requireRefusal(
          collect(ledger.runs({ ...filter, before: sampleRunId(missing) })),
          'run_not_found',
        )
      }
    },
  },
]
