import type { Ledger } from '../../ports/ledger.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import { everyFact } from '../samples/sample-facts.ts'
import { stamped } from '../samples/sample-ids.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { requireEqual } from '../contract/requirement.ts'
import { appendAt, otherRun, requireRecord, run, saying, startRun, steering } from '../contract/scenario.ts'

const facts = everyFact(run)

/** Releasing a run changes nothing, and refuses no writer. */
export const releaseCases: readonly LedgerContractCase[] = [
  {
    promise: 'a run that is released is as it was: its writer continues, and others may take it over',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      await ledger.put(run, steering('k1'))
      await ledger.release?.(run)
      requireEqual(await ledger.inbox(run), [steering('k1')], 'the inbox of a released run')
      const next = await appendAt(ledger, head, [saying('a')], { consumedInboxKeys: ['k1'] })
      await ledger.release?.(run)
      await ledger.release?.(run)
      requireEqual(await ledger.acquire(run), { seq: 2, epoch: 2 }, 'the head after a take-over')
      await ledger.release?.(otherRun)
      requireEqual(next, { seq: 2, epoch: 1 }, 'the head after the append')
      await requireRecord(ledger, stamped(run, [facts.run_started, saying('a')]), { epoch: 2 })
    },
  },
  {
    promise:
      'a store that knows who drives a run says so: from its first append until it is released or ends',
    async run(open) {
      const ledger = await open()
      await requireDriven(ledger, run, false)
      const head = await startRun(ledger)
      await requireDriven(ledger, run, true)
      await requireDriven(ledger, otherRun, false)
      await ledger.release?.(run, head.epoch)
      await requireDriven(ledger, run, false)
      await ledger.acquire(run)
      await requireDriven(ledger, run, true)
      await appendAt(ledger, { ...head, epoch: 2 }, [facts.run_finished])
      await requireDriven(ledger, run, false)
    },
  },
  {
    promise: 'a writer that was relieved releases nothing that its successor has',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      await ledger.acquire(run)
      await ledger.release?.(run, 1)
      await requireDriven(ledger, run, true)
      await ledger.release?.(run, 2)
      await requireDriven(ledger, run, false)
    },
  },
]

/** A store may not know. */
async function requireDriven(ledger: Ledger, runId: RunId, isDriven: boolean): Promise<void> {
  const found = await ledger.isDriven?.(runId)
  if (found !== undefined) requireEqual(found, isDriven, `whether run ${runId} is driven`)
}
