import type { Head, Ledger } from '../../ledger/ledger.ts'
import type { RunId } from '../../values/ids.ts'
import { everyFact } from '../samples/sample-facts.ts'
import { sampleRunId, stamped } from '../samples/sample-ids.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { requireConflict, requireEqual } from '../contract/requirement.ts'
import { appendAt, barrier, collect, saying } from '../contract/scenario.ts'

/** A run at a place of a session. */
function startAt(ledger: Ledger, runId: RunId, sessionId: string, sessionPlace: number): Promise<Head> {
  const started = { ...everyFact(runId).run_started, sessionId, sessionPlace }
  return ledger.append(runId, { expectedSeq: 0, epoch: 1 }, stamped(runId, [started]), barrier)
}

async function runsOf(ledger: Ledger, sessionId: string): Promise<readonly RunId[]> {
  return (await collect(ledger.runs({ sessionId }))).map(({ runId }) => runId)
}

const [first, second, third] = [1, 2, 3].map(sampleRunId) as [RunId, RunId, RunId]

/** Sessions: runs that follow each other, each at a place of its own. */
export const sessionCases: readonly LedgerContractCase[] = [
  {
    promise: 'the runs of a session are listed by themselves, the last place first',
    async run(open) {
      const ledger = await open()
      await startAt(ledger, first, 'a', 1)
      await startAt(ledger, second, 'b', 1)
      await startAt(ledger, third, 'a', 2)
      await appendAt(ledger, { seq: 1, epoch: 1 }, [saying('x')], { runId: first })
      const listed = [
        { runId: third, head: { seq: 1, epoch: 1 }, sessionId: 'a', sessionPlace: 2 },
        { runId: first, head: { seq: 2, epoch: 1 }, sessionId: 'a', sessionPlace: 1 },
      ]
      requireEqual(await collect(ledger.runs({ sessionId: 'a' })), listed, 'the runs of session a')
      requireEqual(await runsOf(ledger, 'b'), [second], 'the runs of session b')
      requireEqual((await collect(ledger.runs())).length, 3, 'the number of all runs')
    },
  },
  {
    promise: 'a session that no run has begun has no runs',
    async run(open) {
      const ledger = await open()
      await startAt(ledger, first, 'a', 1)
      requireEqual(await runsOf(ledger, 'A'), [], 'the runs of another session')
      requireEqual(await runsOf(ledger, ''), [], 'the runs of a session without a name')
    },
  },
  {
    promise: 'a place of a session is taken once: the second run at it is not made',
    async run(open) {
      const ledger = await open()
      await startAt(ledger, first, 'a', 1)
      await requireConflict(startAt(ledger, second, 'a', 1), 'unique')
      requireEqual((await ledger.head(second)) ?? null, null, 'the head of the run that was refused')
      requireEqual(await runsOf(ledger, 'a'), [first], 'the runs of the session')
      requireEqual(await startAt(ledger, second, 'a', 2), { seq: 1, epoch: 1 }, 'the head at the next place')
    },
  },
  {
    promise: 'of many runs that want one place of a session at once, one gets it',
    async run(open) {
      const ledger = await open()
      const wanted = Array.from({ length: 8 }, (_, index) => startAt(ledger, sampleRunId(index + 1), 'a', 1))
      const outcomes = await Promise.allSettled(wanted)
      const got = outcomes.filter(({ status }) => status === 'fulfilled')
      requireEqual(got.length, 1, 'the number of runs that got the place')
      requireEqual((await collect(ledger.runs())).length, 1, 'the number of runs')
    },
  },
  {
    promise: 'the same place of another session is another place',
    async run(open) {
      const ledger = await open()
      await startAt(ledger, first, 'a', 1)
      await startAt(ledger, second, 'b', 1)
      requireEqual(await runsOf(ledger, 'b'), [second], 'the runs of the other session')
    },
  },
  {
    promise: 'the first append of a run in a session is recognised when its acknowledgement was lost',
    async run(open) {
      const ledger = await open()
      await startAt(ledger, first, 'a', 1)
      requireEqual(await startAt(ledger, first, 'a', 1), { seq: 1, epoch: 1 }, 'the head at the second try')
      requireEqual(await runsOf(ledger, 'a'), [first], 'the runs of the session')
    },
  },
]
