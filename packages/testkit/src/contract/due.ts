import type { Ledger, RunId } from '@tallystick/core'
import type { DueFilter, Head, RunWait, TakeOverClaim } from '@tallystick/core/vocabulary'
import { sampleFacts } from '../samples/events.ts'
import { sampleRunId, stampFacts } from '../samples/values.ts'
import { waitForHint } from './changes.ts'
import {
  appendAt,
  appendFirst,
  barrier,
  checkLedger,
  checkShared,
  collect,
  type LedgerContractCase,
  otherRun,
  requireConflict,
  requireEqual,
  requireRefusal,
  run,
  saying,
  startRun,
  steering,
} from './scenario.ts'

const hour = 3_600_000
const held: TakeOverClaim = { holder: 'a', forMs: hour }
const lapsed: TakeOverClaim = { ...held, forMs: 0 }
/** Times far from that of any clock. */
const [early, late] = [1_000, 2_000]

const { run_finished } = sampleFacts(run)

/** Runs that have something to do, and that nobody drives, are found without a look at those that wait. */
export const dueCases: readonly LedgerContractCase[] = [
  checkLedger('a run is due from its first append on, unless a lease lasts', async (ledger) => {
    await requireDue(ledger, [])
    await startRun(ledger)
    await requireDue(ledger, [[run, 0]])
    await startDriven(ledger, held, otherRun)
    await requireDue(ledger, [[run, 0]])
  }),
  checkLedger('a run is due whose lease has ended, since its driver has died', async (ledger) => {
    await startDriven(ledger, lapsed)
    await requireDue(ledger, [[run, 0]])
    await ledger.acquire(run, held)
    await requireDue(ledger, [])
    await ledger.acquire(run, lapsed)
    await requireDue(ledger, [[run, 0]])
  }),
  checkLedger('a run that is released without what it waits for is due at once', async (ledger) => {
    await startDriven(ledger, held)
    await ledger.release(run, 'a')
    await requireDue(ledger, [[run, 0]])
  }),
  checkLedger('a run that is released to wait is due at its time, or never', async (ledger) => {
    for (const [place, wait] of [{ wakeAt: late }, {}, { wakeAt: undefined }].entries()) {
      const runId = sampleRunId(place + 1)
      await startDriven(ledger, held, runId)
      await ledger.release(runId, 'a', wait)
    }
    await requireDue(ledger, [[run, late]])
    await requireDue(ledger, [], { before: late - 1 })
    await requireDue(ledger, [[run, late]], { before: late })
  }),
  checkLedger('only the holder of a run says what it waits for', async (ledger) => {
    await startDriven(ledger, held)
    await ledger.release(run, 'b', { wakeAt: late })
    await ledger.release(otherRun, 'a', { wakeAt: late })
    await requireDue(ledger, [])
    await ledger.release(run, 'a')
    await ledger.release(run, 'a', { wakeAt: late })
    await requireDue(ledger, [[run, 0]])
  }),
  checkLedger(
    'a command makes a run that waits due at once, and one that is known does not',
    async (ledger) => {
      await startResting(ledger, { wakeAt: late })
      await ledger.put(run, steering('k1'))
      await requireDue(ledger, [[run, 0]])
      const head = await ledger.acquire(run, held)
      await appendAt(ledger, head, [saying('one')], { consumedInboxKeys: ['k1'] })
      await ledger.release(run, 'a', { wakeAt: late })
      await ledger.put(run, steering('k1'))
      await requireDue(ledger, [[run, late]])
    },
  ),
  checkLedger('a run that is released with a command unread is due at once', async (ledger) => {
    const head = await startDriven(ledger, held)
    await ledger.put(run, steering('k1'))
    await ledger.put(run, steering('k2'))
    await ledger.release(run, 'a', { wakeAt: late })
    await requireDue(ledger, [[run, 0]])
    await ledger.acquire(run, held)
    await appendAt(ledger, { ...head, epoch: 2 }, [], { consumedInboxKeys: ['k1', 'k2'] })
    await ledger.release(run, 'a', { wakeAt: late })
    await requireDue(ledger, [[run, late]])
  }),
  checkLedger(
    'a take-over makes a run that waits due, and an append leaves that as it is',
    async (ledger) => {
      const { seq } = await startResting(ledger, { wakeAt: late })
      await appendAt(ledger, { seq, epoch: 1 }, [saying('one')])
      await requireDue(ledger, [[run, late]])
      await ledger.acquire(run)
      await requireDue(ledger, [[run, 0]])
    },
  ),
  checkLedger('a run that has ended is never due', async (ledger) => {
    const head = await startDriven(ledger, lapsed)
    await appendAt(ledger, head, [run_finished], { lease: lapsed })
    await appendFirst(
      ledger,
      stampFacts(otherRun, [sampleFacts(otherRun).run_started, sampleFacts(otherRun).run_finished]),
    )
    await requireDue(ledger, [])
    await ledger.acquire(run, held)
    await ledger.release(run, 'a', { wakeAt: early })
    await requireRefusal(ledger.put(run, steering('k1')), 'ledger_conflict')
    await requireDue(ledger, [])
  }),
  checkLedger('the end of a child run makes its parent due, in the same append', async (ledger) => {
    await startResting(ledger, { wakeAt: late })
    const child = await startDriven(ledger, lapsed, otherRun)
    const ending = [sampleFacts(otherRun).run_finished]
    const wakes = { runId: otherRun, wakes: run }
    await requireConflict(appendAt(ledger, { ...child, epoch: 2 }, ending, wakes), 'epoch')
    await requireDue(ledger, [
      [otherRun, 0],
      [run, late],
    ])
    await appendAt(ledger, child, ending, wakes)
    await requireDue(ledger, [[run, 0]])
  }),
  checkLedger('the end of a child run makes no run due that has ended or is not there', async (ledger) => {
    await startRun(ledger, run, [run_finished])
    for (const [place, wakes] of [run, sampleRunId(9)].entries()) {
      const runId = sampleRunId(place + 2)
      await startRun(ledger, runId)
      await appendAt(ledger, { seq: 1, epoch: 1 }, [sampleFacts(runId).run_finished], { runId, wakes })
    }
    await requireDue(ledger, [])
  }),
  checkLedger(
    'child runs that end together with their parent at work make it due, however appends are recorded',
    async (ledger) => {
      await startResting(ledger, {})
      const children = [2, 3, 4].map(sampleRunId)
      await Promise.all(children.map((runId) => startRun(ledger, runId)))
      await Promise.all([
        ...children.map((runId) =>
          appendAt(ledger, { seq: 1, epoch: 1 }, [sampleFacts(runId).run_finished], { runId, wakes: run }),
        ),
        appendAt(ledger, { seq: 1, epoch: 1 }, [saying('one')]),
      ])
      requireEqual((await ledger.head(run))?.seq, 2, 'the end of the parent')
      await requireDue(ledger, [[run, 0]])
    },
  ),
  checkLedger(
    'a run that is released to wait for a child run that has ended is due at once',
    async (ledger) => {
      const [ended, open, missing] = [otherRun, sampleRunId(3), sampleRunId(9)]
      await startDriven(ledger, held)
      await startRun(ledger, ended, [sampleFacts(ended).run_finished])
      await startDriven(ledger, held, open)
      await ledger.release(run, 'a', { children: [open, missing] })
      await requireDue(ledger, [])
      await ledger.acquire(run, held)
      await ledger.release(run, 'a', { wakeAt: late, children: [open, ended] })
      await requireDue(ledger, [[run, 0]])
    },
  ),
  checkLedger('due runs come by their time, then by their place, page by page', async (ledger) => {
    const times = [late, 0, early, late, 0, early, undefined]
    for (const [place, wakeAt] of times.entries())
      await startResting(ledger, { wakeAt }, sampleRunId(place + 1))
    const expected = [2, 5, 3, 6, 1, 4].map((n) => [sampleRunId(n), times[n - 1] ?? 0] as const)
    await requireDue(ledger, expected)
    await requireDue(ledger, expected.slice(0, 4), { before: late - 1 })
    for (const limit of [1, 2, 4]) {
      const seen: (readonly [RunId, number])[] = []
      // A store that begins every page anew would go on for ever.
      while (seen.length <= expected.length) {
        const [runId, dueAt] = seen.at(-1) ?? []
        const after = runId === undefined || dueAt === undefined ? undefined : { runId, dueAt }
        const page = await collect(ledger.due({ before: late, limit, after }))
        if (page.length === 0) break
        seen.push(...page.map(({ runId, dueAt }) => [runId, dueAt] as const))
      }
      requireEqual(seen, expected, `the pages of ${limit}`)
    }
    requireEqual(await collect(ledger.due({ before: Infinity, limit: 0 })), [], 'an empty page')
    requireEqual(await collect(ledger.due({ before: -1 })), [], 'what is due before any time')
  }),
  checkLedger('a page goes on after a run that is not due any more', async (ledger) => {
    for (const n of [1, 2, 3]) await startRun(ledger, sampleRunId(n))
    await ledger.acquire(otherRun, held)
    await requireDue(ledger, [[sampleRunId(3), 0]], { after: { runId: otherRun, dueAt: 0 } })
    const missing = { runId: sampleRunId(9), dueAt: 0 }
    await requireRefusal(collect(ledger.due({ before: late, after: missing })), 'run_not_found')
  }),
  checkLedger(
    'a follower of every inbox is hinted at a start that nobody drives, and at the end of a child run',
    async (ledger) => {
      const isDue = (runId: RunId) => async () =>
        (await collect(ledger.due({ before: Infinity }))).some((due) => due.runId === runId)
      const inboxes = ledger.changes(undefined, 'inbox')
      await waitForHint(ledger, () => startRun(ledger), isDue(run), inboxes)
      const child = await startDriven(ledger, held, otherRun)
      await ledger.acquire(run, held)
      await ledger.release(run, 'a', {})
      const ending = [sampleFacts(otherRun).run_finished]
      const end = (): Promise<Head> => appendAt(ledger, child, ending, { runId: otherRun, wakes: run })
      await waitForHint(ledger, end, isDue(run), inboxes)
    },
  ),
  checkLedger('a wrong filter of due runs, and a wrong wait, is refused', async (ledger) => {
    await startDriven(ledger, held)
    const wrong = [
      undefined,
      {},
      { before: '5' },
      { before: late, status: 'open' },
      { before: late, limit: -1 },
    ]
    for (const filter of wrong) await requireRefusal(collect(ledger.due(filter as never)), 'configuration')
    for (const wait of [{ wakeAt: 'soon' }, { children: run }, { until: late }])
      await requireRefusal((async () => ledger.release(run, 'a', wait as never))(), 'configuration')
  }),
  checkShared('a put and the release of its run never miss each other', async (first, second) => {
    for (let n = 1; n <= 20; n++) {
      const runId = sampleRunId(n)
      await startDriven(first, held, runId)
      await Promise.all([first.release(runId, 'a', {}), second.put(runId, steering('k'))])
      await requireDue(second, [[runId, 0]])
      await second.acquire(runId, held)
    }
  }),
  checkShared(
    'the end of a child run and the release of its parent never miss each other',
    async (first, second) => {
      for (let n = 1; n <= 40; n += 2) {
        const [runId, child] = [sampleRunId(n), sampleRunId(n + 1)]
        await startDriven(first, held, runId)
        await startRun(second, child)
        await Promise.all([
          first.release(runId, 'a', { children: [child] }),
          appendAt(second, { seq: 1, epoch: 1 }, [sampleFacts(child).run_finished], {
            ...barrier,
            runId: child,
            wakes: runId,
          }),
        ])
        await requireDue(second, [[runId, 0]])
        await second.acquire(runId, held)
      }
    },
  ),
]

function startDriven(ledger: Ledger, lease: TakeOverClaim, runId: RunId = run): Promise<Head> {
  return appendFirst(ledger, stampFacts(runId, [sampleFacts(runId).run_started]), { ...barrier, lease })
}

/** A run whose driver has let it go to wait. */
async function startResting(ledger: Ledger, wait: RunWait, runId: RunId = run): Promise<Head> {
  const head = await startDriven(ledger, held, runId)
  await ledger.release(runId, held.holder, wait)
  return head
}

/** Fails the case unless exactly these runs are due, in this order; by any time unless the filter names one. */
async function requireDue(
  ledger: Ledger,
  expected: readonly (readonly [RunId, number])[],
  filter: Partial<DueFilter> = {},
): Promise<void> {
  const due = await collect(ledger.due({ before: Infinity, ...filter }))
  requireEqual(
    due.map(({ runId, dueAt }) => [runId, dueAt]),
    expected,
    'the due runs',
  )
}
