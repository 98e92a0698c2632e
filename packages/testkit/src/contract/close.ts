import type { Observable } from 'rxjs'
import type { Ledger } from '@tallystick/core'
import { sampleFacts } from '../samples/events.ts'
import { sampleRunId, stampFacts } from '../samples/values.ts'
import {
  appendAt,
  barrier,
  collect,
  checkDurable,
  checkLedger,
  checkRun,
  type LedgerContractCase,
  otherRun,
  requireConflict,
  requireEqual,
  requireRecord,
  requireRefusal,
  run,
  saying,
  startRun,
  steering,
  tailUntil,
} from './scenario.ts'

const facts = sampleFacts(run)

/** Waits until the hints end. A reader that follows them looks once more then, and has to be refused. */
async function requireRefusedAtEnd(ledger: Ledger, hints$: Observable<void>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const isRefused = (): Promise<unknown> => requireRefusal(ledger.head(run), 'ledger_unavailable')
    hints$.subscribe({ error: reject, complete: () => void isRefused().then(() => resolve(), reject) })
  })
}

/** Closing releases files; what was acknowledged is there when the store is opened again. */
export const closeCases: readonly LedgerContractCase[] = [
  checkRun(
    'a ledger that is closed refuses every use, and closing it again does nothing',
    async (ledger, head) => {
      await ledger.close()
      await ledger.close()
      await requireRefusal(appendAt(ledger, head, [saying('late')]), 'ledger_unavailable')
      await requireRefusal(ledger.acquire(run), 'ledger_unavailable')
      await requireRefusal(ledger.head(run), 'ledger_unavailable')
      await requireRefusal(collect(ledger.read(run)), 'ledger_unavailable')
      await requireRefusal(collect(ledger.find()), 'ledger_unavailable')
      await requireRefusal(collect(ledger.find({ types: ['run_started'] })), 'ledger_unavailable')
      await requireRefusal(collect(ledger.tail()), 'ledger_unavailable')
      await requireRefusal(collect(ledger.runs()), 'ledger_unavailable')
      await requireRefusal(ledger.put(run, steering('k1')), 'ledger_unavailable')
      await requireRefusal(ledger.inbox(run), 'ledger_unavailable')
    },
  ),
  checkLedger(
    'a read, a search, a tail and a list that are under way yield nothing more once the ledger is closed',
    async (ledger) => {
      await startRun(ledger, run, [saying('a'), saying('b'), facts.cancel_requested])
      await startRun(ledger, otherRun, [saying('a')])
      // A tail may hold back acknowledged events for a while.
      await tailUntil(ledger, 2)
      const underWay = [ledger.read(run), ledger.find(), ledger.tail(), ledger.runs()]
      const iterators = underWay.map((items) => items[Symbol.asyncIterator]())
      for (const iterator of iterators) requireEqual((await iterator.next()).done ?? false, false, 'the end')
      await ledger.close()
      for (const iterator of iterators) await requireRefusal(iterator.next(), 'ledger_unavailable')
    },
  ),
  checkRun(
    'closing a ledger ends its hints, once it refuses to be read, also for those that come later',
    async (ledger) => {
      const hints = [ledger.changes(run), ledger.changes(run, 'inbox'), ledger.changes()]
      const ends = hints.map((hints$) => requireRefusedAtEnd(ledger, hints$))
      await ledger.close()
      await Promise.all(ends)
      await Promise.all(hints.map((hints$) => requireRefusedAtEnd(ledger, hints$)))
    },
  ),
  checkDurable(
    'what was appended at a barrier or lazily is there after closing and opening again',
    async (ledger, open) => {
      const head = await startRun(ledger)
      const next = await appendAt(ledger, head, [saying('a')], barrier)
      await appendAt(ledger, next, [saying('b'), saying('c')])
      await ledger.close()
      const record = stampFacts(run, [facts.run_started, saying('a'), saying('b'), saying('c')])
      await requireRecord(await open(), record)
    },
  ),
  checkDurable('the epoch outlives closing: a writer of before stays shut out', async (ledger, open) => {
    const old = await startRun(ledger)
    await ledger.acquire(run)
    await ledger.close()
    const again = await open()
    await requireConflict(appendAt(again, old, [saying('late')]), 'epoch')
    requireEqual(await again.acquire(run), { seq: 1, epoch: 3 }, 'the head after the next take-over')
  }),
  checkDurable(
    'inbox entries, their order and the keys that were taken outlive closing',
    async (ledger, open) => {
      const head = await startRun(ledger)
      for (const key of ['k3', 'k1', 'k2']) await ledger.put(run, steering(key))
      await appendAt(ledger, head, [saying('a')], { consumedInboxKeys: ['k1'] })
      await ledger.close()
      const again = await open()
      requireEqual(await again.inbox(run), [steering('k3'), steering('k2')], 'the inbox')
      requireEqual(await again.put(run, steering('k1')), false, 'whether a key that was taken is new')
    },
  ),
  checkDurable('facts that are recorded once outlive closing', async (ledger, open) => {
    await startRun(ledger, run, [facts.tool_started, facts.tool_result])
    await ledger.close()
    const again = await open()
    await requireConflict(appendAt(again, { seq: 3, epoch: 1 }, [facts.tool_started]), 'unique')
    await requireConflict(appendAt(again, { seq: 3, epoch: 1 }, [facts.tool_result]), 'unique')
  }),
  checkDurable(
    'a lost acknowledgement is recognised after closing and opening again',
    async (ledger, open) => {
      const head = await startRun(ledger)
      await appendAt(ledger, head, [saying('a')])
      await ledger.close()
      requireEqual(await appendAt(await open(), head, [saying('a')]), { seq: 2, epoch: 1 }, 'the head')
    },
  ),
  checkDurable('cursors of a tail outlive closing', async (ledger, open) => {
    const head = await startRun(ledger, run, [saying('a'), saying('b')])
    const all = await tailUntil(ledger, 3)
    await ledger.close()
    const again = await open()
    requireEqual(await collect(again.tail(all[0]?.cursor)), all.slice(1), 'the tail after the first event')
    await appendAt(again, head, [saying('c')], barrier)
    const [next] = await tailUntil(again, 1, all.at(-1)?.cursor)
    requireEqual(next?.event, stampFacts(run, [saying('c')], { afterSeq: 3 })[0], 'what was appended then')
  }),
  checkDurable('the order of runs outlives closing', async (ledger, open) => {
    for (const ordinal of [5, 3, 8]) await startRun(ledger, sampleRunId(ordinal))
    await ledger.close()
    const again = await open()
    await startRun(again, otherRun)
    const order = (await collect(again.runs())).map(({ runId }) => runId)
    requireEqual(order, [otherRun, ...[8, 3, 5].map((ordinal) => sampleRunId(ordinal))], 'the runs')
  }),
]
