import type { Ledger } from '../../ports/ledger.ts'
import type { RunLeases } from '../../ports/run-leases.ts'
import { everyFact } from '../samples/sample-facts.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { requireEqual } from '../contract/requirement.ts'
import { appendAt, otherRun, requireRecord, run, saying, startRun } from '../contract/scenario.ts'

const long = 3_600_000

/** A lease of no milliseconds has expired as soon as it is taken, so that a case needs no clock. */
const expiresAtOnce = 0

/** A store that has no leases keeps these promises. */
export const leaseCases: readonly LedgerContractCase[] = [
  {
    promise: 'a store that has leases gives that of a run to one holder, until it is given back or expires',
    run: withLeases(async (leases) => {
      await requireTaken(leases, 'a', true)
      await requireTaken(leases, 'b', false)
      await requireTaken(leases, 'a', true)
      await leases.giveBack(run, 'b')
      await requireTaken(leases, 'b', false)
      await leases.giveBack(run, 'a')
      await requireTaken(leases, 'b', true, expiresAtOnce)
      await requireTaken(leases, 'a', true)
      requireEqual(await leases.take(otherRun, 'b', long), false, 'a lease of a run that does not exist')
    }),
  },
  {
    promise: 'of two holders that take a lease at once, one gets it',
    run: withLeases(async (leases) => {
      const takes = ['a', 'b', 'c'].map((holder) => leases.take(run, holder, long))
      const taken = (await Promise.all(takes)).filter((isTaken) => isTaken)
      requireEqual(taken, [true], 'the holders that got the lease')
    }),
  },
  {
    promise: 'a lease that is renewed lasts on, and those of other holders do not',
    run: withLeases(async (leases, ledger) => {
      await startRun(ledger, otherRun)
      await requireTaken(leases, 'a', true, expiresAtOnce)
      requireEqual(await leases.take(otherRun, 'b', expiresAtOnce), true, 'the other lease')
      await leases.renew('a', long)
      requireEqual(await leases.expired(), [otherRun], 'the expired leases')
      await requireTaken(leases, 'b', false)
      await leases.renew('c', long)
    }),
  },
  {
    promise: 'an expired lease tells that its holder has gone, until another process takes the run over',
    run: withLeases(async (leases, ledger) => {
      requireEqual(await leases.expired(), [], 'the expired leases before the first')
      await requireTaken(leases, 'a', true, expiresAtOnce)
      requireEqual(await leases.expired(), [run], 'the expired leases')
      await ledger.acquire(run)
      requireEqual(await leases.expired(), [run], 'the expired leases after the take-over by the holder')
      await ledger.acquire(run)
      requireEqual(await leases.expired(), [], 'the expired leases after the take-over by another process')
      await requireTaken(leases, 'a', true, expiresAtOnce)
      requireEqual(await leases.expired(), [run], 'the expired leases once it is taken again')
      await leases.giveBack(run, 'a')
      requireEqual(await leases.expired(), [], 'the expired leases after one was given back')
      await requireTaken(leases, 'a', true, expiresAtOnce)
      await appendAt(ledger, { seq: 1, epoch: 3 }, [everyFact(run).run_finished])
      requireEqual(await leases.expired(), [], 'the expired leases after the run has ended')
    }),
  },
  {
    promise: 'a lease refuses no writer, and is no part of the record',
    run: withLeases(async (leases, ledger) => {
      await requireTaken(leases, 'a', true)
      const next = await appendAt(ledger, { seq: 1, epoch: 1 }, [saying('a')])
      requireEqual(next, { seq: 2, epoch: 1 }, 'the head after the append')
      requireEqual(await ledger.acquire(run), { seq: 2, epoch: 2 }, 'the head after a take-over')
      await leases.giveBack(run, 'a')
      const events = []
      for await (const event of ledger.read(run)) events.push(event)
      await requireRecord(ledger, events, { epoch: 2 })
    }),
  },
]

/** A case about a run that exists. */
function withLeases(work: (leases: RunLeases, ledger: Ledger) => Promise<void>): LedgerContractCase['run'] {
  return async (open) => {
    const ledger = await open()
    if (ledger.leases === undefined) return
    await startRun(ledger)
    await work(ledger.leases, ledger)
  }
}

async function requireTaken(
  leases: RunLeases,
  holder: string,
  isTaken: boolean,
  forMs: number = long,
): Promise<void> {
  requireEqual(await leases.take(run, holder, forMs), isTaken, `whether holder ${holder} has the lease`)
}
