import { type Ledger, LedgerConflictError, type RunId } from '@tallystick/core'
import type { Lease, TakeOverClaim } from '@tallystick/core/vocabulary'
import { sampleFacts } from '../samples/events.ts'
import { sampleRunId, stampFacts } from '../samples/values.ts'
import {
  appendAt,
  appendFirst,
  barrier,
  collect,
  lazy,
  checkLedger,
  checkRun,
  checkShared,
  type LedgerContractCase,
  otherRun,
  require,
  requireConflict,
  requireEqual,
  requireRecord,
  requireRefusal,
  run,
  saying,
  startRun,
  steering,
} from './scenario.ts'

const hour = 3_600_000

/** A lease that lasts as long as the case. */
const [a, b, c] = ['a', 'b', 'c'].map((holder) => ({ holder, forMs: hour })) as unknown as [
  TakeOverClaim,
  TakeOverClaim,
  TakeOverClaim,
]

/** A lease that has ended as soon as it is taken, so that a case needs no clock. */
const lapsed = (claim: TakeOverClaim): TakeOverClaim => ({ ...claim, forMs: 0 })

const { run_started, run_finished } = sampleFacts(run)

/** Every drive of a run has a lease in the ledger. */
export const leaseCases: readonly LedgerContractCase[] = [
  checkLedger(
    'the first append of a run takes its lease, and a later one renews it or leaves it as it is',
    async (ledger) => {
      requireEqual((await ledger.lease(run)) ?? null, null, 'the lease of a run that is not there')
      const first = await startDriven(ledger, a)
      await requireLease(ledger, 'a')
      const second = await appendAt(ledger, first, [saying('one')])
      await requireLease(ledger, 'a')
      const third = await appendAt(ledger, second, [saying('two')], { lease: lapsed(a) })
      await requireLease(ledger, undefined)
      await appendAt(ledger, third, [saying('three')], { lease: a })
      await requireLease(ledger, 'a')
    },
  ),
  checkRun('an append without a lease takes none', async (ledger, head) => {
    await appendAt(ledger, head, [saying('one')])
    await requireLease(ledger, undefined)
  }),
  checkLedger('of appends that are recorded together each takes the lease that it names', async (ledger) => {
    const runs = [1, 2, 3, 4, 5].map(sampleRunId)
    await Promise.all(runs.map((runId) => startDriven(ledger, a, runId)))
    const given = [b, undefined, lapsed(a), c, undefined]
    await Promise.all(
      runs.map((runId, index) =>
        appendAt(ledger, { seq: 1, epoch: 1 }, index === 4 ? [run_finished] : [saying('one')], {
          runId,
          ...(given[index] && { lease: given[index] }),
        }),
      ),
    )
    const holders = await Promise.all(runs.map(async (runId) => (await ledger.lease(runId))?.holder ?? null))
    requireEqual(holders, ['b', 'a', null, 'c', null], 'the holders')
  }),
  checkLedger('an append that is refused takes no lease', async (ledger) => {
    const first = await startDriven(ledger, a)
    await ledger.acquire(run, { ...b, from: 'a' })
    await requireConflict(appendAt(ledger, first, [saying('late')], { lease: a }), 'epoch')
    await requireConflict(appendAt(ledger, { seq: 7, epoch: 2 }, [saying('gap')], { lease: c }), 'seq')
    await requireLease(ledger, 'b')
  }),
  checkLedger(
    'an append whose acknowledgement was lost takes no lease from the one who has the run by then',
    async (ledger) => {
      await startDriven(ledger, a)
      await ledger.acquire(run, { ...b, from: 'a' })
      await startDriven(ledger, a)
      await requireLease(ledger, 'b')
    },
  ),
  checkLedger(
    'a run is not taken over while another holder has its lease, and the refusal says who and for how long',
    async (ledger) => {
      await startDriven(ledger, a)
      const lease = await requireHeld(ledger, b)
      requireEqual(lease.holder, 'a', 'the holder that the refusal names')
      require(lease.leftMs > 0 && lease.leftMs <= hour, `a lease of ${lease.leftMs} ms is left`)
      await requireHeld(ledger, { ...b, from: 'c' })
      await requireRecord(ledger, stampFacts(run, [run_started]), { epoch: 1 })
      requireEqual(await ledger.acquire(run, a), { seq: 1, epoch: 2 }, 'the head for its own holder')
    },
  ),
  checkLedger(
    'a lease that has ended, or was released, lets the next one take the run over',
    async (ledger) => {
      await startDriven(ledger, lapsed(a))
      requireEqual(await ledger.acquire(run, b), { seq: 1, epoch: 2 }, 'the head after the lease has ended')
      await requireLease(ledger, 'b')
      await ledger.release(run, 'b')
      await requireLease(ledger, undefined)
      requireEqual(await ledger.acquire(run, c), { seq: 1, epoch: 3 }, 'the head after the release')
      await requireLease(ledger, 'c')
    },
  ),
  checkLedger(
    'a run is taken at once from the holder that is said to have died, and from no other',
    async (ledger) => {
      await startDriven(ledger, a)
      const takes = await Promise.allSettled([
        ledger.acquire(run, { ...b, from: 'a' }),
        ledger.acquire(run, { ...c, from: 'a' }),
      ])
      requireEqual(takes.filter(({ status }) => status === 'fulfilled').length, 1, 'the take-overs')
      requireEqual((await ledger.head(run))?.epoch, 2, 'the epoch')
    },
  ),
  checkLedger('of several that take a run over at once one gets it', async (ledger) => {
    await startDriven(ledger, lapsed(a))
    const takes = await Promise.allSettled(
      ['b', 'c', 'd', 'e'].map((holder) => ledger.acquire(run, { holder, forMs: hour })),
    )
    requireEqual(takes.filter(({ status }) => status === 'fulfilled').length, 1, 'the take-overs')
    requireEqual((await ledger.head(run))?.epoch, 2, 'the epoch')
  }),
  checkLedger('a take-over without a claim is never refused, and ends the lease', async (ledger) => {
    await startDriven(ledger, a)
    requireEqual(await ledger.acquire(run), { seq: 1, epoch: 2 }, 'the head')
    await requireLease(ledger, undefined)
    await requireRefusal(ledger.acquire(otherRun, a), 'run_not_found')
  }),
  checkLedger(
    'a writer whose lease has ended appends and takes it again, if nobody has taken the run over',
    async (ledger) => {
      const head = await startDriven(ledger, lapsed(a))
      await appendAt(ledger, head, [saying('one')], { lease: a })
      await requireHeld(ledger, b)
    },
  ),
  checkLedger(
    'leases are renewed for their holder alone, which learns the runs that it has',
    async (ledger) => {
      const [taken, ended, missing] = [sampleRunId(3), sampleRunId(4), sampleRunId(5)]
      await startDriven(ledger, lapsed(a))
      await startDriven(ledger, lapsed(b), otherRun)
      await startDriven(ledger, lapsed(a), taken)
      await ledger.acquire(taken, lapsed(b))
      const head = await startDriven(ledger, a, ended)
      await appendAt(ledger, head, [run_finished], { runId: ended })
      const renewed = await ledger.renew([run, otherRun, taken, ended, missing], a)
      requireEqual(renewed, [run], 'the runs whose leases were renewed')
      await requireLease(ledger, 'a')
      await requireLease(ledger, undefined, otherRun)
      await requireLease(ledger, undefined, taken)
      requireEqual(await ledger.renew([], a), [], 'none of no runs')
    },
  ),
  checkLedger('only its holder releases a lease, and a run that is released is as it was', async (ledger) => {
    const head = await startDriven(ledger, a)
    await ledger.put(run, steering('k1'))
    await ledger.release(run, 'b')
    await requireLease(ledger, 'a')
    await ledger.release(run, 'a')
    await ledger.release(run, 'a')
    await ledger.release(otherRun, 'a')
    requireEqual(await ledger.inbox(run), [steering('k1')], 'the inbox of a released run')
    await appendAt(ledger, head, [saying('a')], { consumedInboxKeys: ['k1'] })
    await requireRecord(ledger, stampFacts(run, [run_started, saying('a')]))
  }),
  checkLedger('a run that has ended has no lease', async (ledger) => {
    const head = await startDriven(ledger, a)
    await appendAt(ledger, head, [run_finished], { lease: a })
    await requireLease(ledger, undefined)
    const whole = stampFacts(otherRun, [
      sampleFacts(otherRun).run_started,
      sampleFacts(otherRun).run_finished,
    ])
    await appendFirst(ledger, whole, { ...barrier, lease: a })
    await requireLease(ledger, undefined, otherRun)
  }),
  checkLedger('a lease refuses no writer, and is not part of the record', async (ledger) => {
    const head = await startDriven(ledger, a)
    await appendAt(ledger, head, [saying('a')])
    await ledger.renew([run], a)
    await ledger.release(run, 'a')
    await requireRecord(ledger, stampFacts(run, [run_started, saying('a')]))
  }),
  checkShared('two processes see the same leases, by the clock of the store', async (first, second) => {
    const head = await startDriven(first, a)
    await requireLease(second, 'a')
    await requireHeld(second, b)
    requireEqual(await second.renew([run], b), [], 'what another holder renews')
    await second.acquire(run, { ...b, from: 'a' })
    requireEqual(await first.renew([run], a), [], 'what the relieved holder renews')
    await first.release(run, 'a')
    await requireLease(first, 'b')
    await requireConflict(appendAt(first, head, [saying('late')], { lease: a }), 'epoch')
    await second.release(run, 'b')
    await requireLease(first, undefined)
    requireEqual((await first.acquire(run, a)).epoch, 3, 'the epoch')
  }),
]

/** A run whose first append takes its lease. */
function startDriven(ledger: Ledger, lease: TakeOverClaim, runId: RunId = run): ReturnType<Ledger['append']> {
  return appendFirst(ledger, stampFacts(runId, [sampleFacts(runId).run_started]), { ...lazy, lease })
}

/** Fails the case unless that holder has the lease of a run; where none is named, nobody. */
async function requireLease(ledger: Ledger, holder: string | undefined, runId: RunId = run): Promise<void> {
  const lease = await ledger.lease(runId)
  requireEqual(lease?.holder ?? null, holder ?? null, 'the holder of the lease')
  if (lease) require(lease.leftMs > 0 && lease.leftMs <= hour, `a lease of ${lease.leftMs} ms is left`)
}

/** Fails the case unless a take-over is refused for the lease of another; answers that lease. */
async function requireHeld(ledger: Ledger, claim: TakeOverClaim): Promise<Lease> {
  const error = await requireRefusal(ledger.acquire(run, claim), 'ledger_conflict')
  require(error instanceof LedgerConflictError && error.kind === 'lease', 'the refusal is not of kind lease')
  require(error.lease !== undefined, 'the refusal does not say who has the lease')
  return error.lease
}

const start = stampFacts(run, [run_started])

/** A take-over raises the epoch of a run first; from then on no other writer can append. */
export const takeOverCases: readonly LedgerContractCase[] = [
  checkRun('taking a run over raises its epoch by one and leaves its seq', async (ledger) => {
    requireEqual(await ledger.acquire(run), { seq: 1, epoch: 2 }, 'the head after the first take-over')
    requireEqual(await ledger.acquire(run), { seq: 1, epoch: 3 }, 'the head after the second')
    await requireRecord(ledger, start, { epoch: 3 })
  }),
  checkLedger('the writer before a take-over can append nothing, at a barrier or lazily', async (ledger) => {
    const old = await startRun(ledger)
    await ledger.acquire(run)
    await requireConflict(appendAt(ledger, old, [saying('late')]), 'epoch')
    await requireConflict(appendAt(ledger, old, [saying('late')], barrier), 'epoch')
    await requireConflict(appendAt(ledger, old, []), 'epoch')
    await requireRecord(ledger, start, { epoch: 2 })
  }),
  checkLedger('the writer before a take-over takes nothing from the inbox', async (ledger) => {
    const old = await startRun(ledger)
    await ledger.put(run, steering('k1'))
    await ledger.acquire(run)
    await requireConflict(appendAt(ledger, old, [saying('late')], { consumedInboxKeys: ['k1'] }), 'epoch')
    requireEqual(await ledger.inbox(run), [steering('k1')], 'the inbox')
  }),
  checkRun('the new writer appends under its epoch, and the events keep theirs', async (ledger) => {
    const head = await ledger.acquire(run)
    requireEqual(await appendAt(ledger, head, [saying('a')]), { seq: 2, epoch: 2 }, 'the head')
    const record = [...start, ...stampFacts(run, [saying('a')], { afterSeq: 1, epoch: 2 })]
    await requireRecord(ledger, record, { epoch: 2 })
  }),
  checkRun(
    'of several take-overs at once each gets an epoch of its own, and only the last may append',
    async (ledger) => {
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
  ),
  checkRun('taking over one run leaves the others to their writers', async (ledger) => {
    const head = await startRun(ledger, otherRun)
    await ledger.acquire(run)
    requireEqual(
      await appendAt(ledger, head, [saying('a')], { runId: otherRun }),
      { seq: 2, epoch: 1 },
      'the head of the other run',
    )
  }),
  checkLedger(
    'a run that is not there has no head, cannot be taken over, and is not made by trying',
    async (ledger) => {
      await startRun(ledger, otherRun)
      const missing = sampleRunId(9)
      const { message } = await requireRefusal(ledger.acquire(missing), 'run_not_found')
      requireEqual(message.includes(missing), true, 'whether the refusal names the run')
      requireEqual((await ledger.head(missing)) ?? null, null, 'the head')
      requireEqual((await collect(ledger.runs())).length, 1, 'the number of runs')
    },
  ),
]
