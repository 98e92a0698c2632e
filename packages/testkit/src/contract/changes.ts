import { firstValueFrom, type Observable } from 'rxjs'
import type { Ledger, RunId } from '@tallystick/core'
import { sampleFacts } from '../samples/events.ts'
import { stampFacts } from '../samples/values.ts'
import {
  appendAt,
  barrier,
  collect,
  checkLedger,
  checkRun,
  checkShared,
  type LedgerContractCase,
  otherRun,
  requireConflict,
  requireEqual,
  requireRecord,
  run,
  saying,
  startRun,
  steering,
  tailUntil,
} from './scenario.ts'

/**
 * Resolves once a hint came after which the condition holds. A hint may come for nothing, so the first proves little;
 * one that never comes leaves the case hanging, for the runner's time limit.
 */
export async function waitForHint(
  ledger: Ledger,
  act: () => Promise<unknown>,
  holds: () => Promise<boolean>,
  changes$: Observable<void> = ledger.changes(run),
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const hints = changes$.subscribe({
      next: () => {
        holds().then((held) => {
          if (!held) return
          hints.unsubscribe()
          resolve()
        }, reject)
      },
      error: reject,
    })
    act().catch(reject)
  })
}

/** The condition that a run has come to a seq. */
function reaches(ledger: Ledger, seq: number, runId: RunId = run): () => Promise<boolean> {
  return async () => (await ledger.head(runId))?.seq === seq
}

/** The condition that so many commands wait in the inbox of a run. */
function awaits(ledger: Ledger, count: number, runId: RunId = run): () => Promise<boolean> {
  return async () => (await ledger.inbox(runId)).length === count
}

/** Hints, without content, that a run's events or inbox may have changed. */
export const changeCases: readonly LedgerContractCase[] = [
  checkRun('an append is hinted at, and the hint comes when it can be read', async (ledger, head) => {
    await waitForHint(ledger, () => appendAt(ledger, head, [saying('a')]), reaches(ledger, 2))
  }),
  checkRun('a put is hinted at, and the hint comes when it can be read', async (ledger) => {
    await waitForHint(ledger, () => ledger.put(run, steering('k1')), awaits(ledger, 1))
  }),
  checkRun(
    'a follower of an inbox is hinted at what is put into it and at what an append takes out of it',
    async (ledger, head) => {
      const options = { durability: 'barrier', consumedInboxKeys: ['k1'] } as const
      await waitForHint(
        ledger,
        () => ledger.put(run, steering('k1')),
        awaits(ledger, 1),
        ledger.changes(run, 'inbox'),
      )
      await waitForHint(
        ledger,
        () => ledger.append(run, { expectedSeq: head.seq, epoch: head.epoch }, [], options),
        awaits(ledger, 0),
        ledger.changes(run, 'inbox'),
      )
    },
  ),
  checkLedger('the first append of a run reaches those who waited for it', async (ledger) => {
    await waitForHint(ledger, () => startRun(ledger), reaches(ledger, 1))
  }),
  checkRun(
    'a follower of every run is hinted at appends and commands of each, new ones too',
    async (ledger) => {
      await waitForHint(
        ledger,
        () => startRun(ledger, otherRun),
        reaches(ledger, 1, otherRun),
        ledger.changes(),
      )
      await waitForHint(
        ledger,
        () => appendAt(ledger, { seq: 1, epoch: 1 }, [saying('a')]),
        reaches(ledger, 2),
        ledger.changes(),
      )
      await waitForHint(
        ledger,
        () => ledger.put(otherRun, steering('k1')),
        awaits(ledger, 1, otherRun),
        ledger.changes(),
      )
    },
  ),
  checkLedger('hints carry no content', async (ledger) => {
    // Together, so that no rejection stays unhandled if the append fails.
    const [hint] = await Promise.all([firstValueFrom(ledger.changes(run)), startRun(ledger)])
    requireEqual(hint ?? null, null, 'the hint')
  }),
  checkLedger('every subscriber hears for itself, and one that left hears no more', async (ledger) => {
    let hintCount = 0
    // A failure of the feed reaches all its subscribers.
    const first = ledger.changes(run).subscribe({ next: () => hintCount++, error: () => {} })
    await waitForHint(ledger, () => startRun(ledger), reaches(ledger, 1))
    first.unsubscribe()
    const before = hintCount
    await waitForHint(
      ledger,
      () => appendAt(ledger, { seq: 1, epoch: 1 }, [sampleFacts(run).cancel_requested]),
      reaches(ledger, 2),
    )
    requireEqual(before > 0, true, 'whether the first subscriber heard anything')
    requireEqual(hintCount, before, 'what it heard after it left')
  }),
  checkLedger('a follower that reads at each hint sees every event once, in order', async (ledger) => {
    const seen: number[] = []
    const head = await startRun(ledger)
    await waitForHint(
      ledger,
      async () => {
        for (let seq = head.seq; seq < 6; seq++) await appendAt(ledger, { ...head, seq }, [saying(`${seq}`)])
      },
      async () => {
        for await (const event of ledger.read(run, { fromSeq: (seen.at(-1) ?? 0) + 1 })) {
          if (event.seq === (seen.at(-1) ?? 0) + 1) seen.push(event.seq)
        }
        return seen.length === 6
      },
    )
    requireEqual(seen, [1, 2, 3, 4, 5, 6], 'what the follower saw')
  }),
]

const facts = sampleFacts(run)

/** Two ledgers over one store, as two processes have them. */
export const sharedCases: readonly LedgerContractCase[] = [
  checkShared('what one ledger appended the other reads', async (one, other) => {
    await startRun(one, run, [saying('a')])
    await requireRecord(other, stampFacts(run, [facts.run_started, saying('a')]))
    requireEqual((await collect(other.runs())).length, 1, 'the number of runs')
    const record = stampFacts(run, [facts.run_started, saying('a')])
    requireEqual(await collect(other.find({ turn: 1 })), record.slice(1), 'what is found of turn 1')
  }),
  checkShared('of two ledgers that append at the same head one is refused', async (one, other) => {
    const head = await startRun(one)
    await appendAt(one, head, [saying('one')], barrier)
    await requireConflict(appendAt(other, head, [saying('other')], barrier), 'seq')
    await requireRecord(other, stampFacts(run, [facts.run_started, saying('one')]))
  }),
  checkShared('a take-over through one ledger shuts out the writer at the other', async (one, other) => {
    const old = await startRun(one)
    const head = await other.acquire(run)
    requireEqual(head, { seq: 1, epoch: 2 }, 'the head of the new writer')
    await requireConflict(appendAt(one, old, [saying('late')]), 'epoch')
    requireEqual(await appendAt(other, head, [saying('a')]), { seq: 2, epoch: 2 }, 'the head of its append')
  }),
  checkShared('a command put through one ledger reaches the inbox of the other, once', async (one, other) => {
    const head = await startRun(one)
    requireEqual(await other.put(run, steering('k1')), true, 'the first answer')
    requireEqual(await one.put(run, steering('k1')), false, 'the answer of the other ledger')
    await appendAt(one, head, [saying('a')], { consumedInboxKeys: ['k1'] })
    requireEqual(await other.inbox(run), [], 'the inbox')
    requireEqual(await other.put(run, steering('k1')), false, 'the answer after it was taken')
  }),
  checkShared('a command put through one ledger is hinted at by the other', async (one, other) => {
    await startRun(one)
    await waitForHint(one, () => other.put(run, steering('k1')), awaits(one, 1))
  }),
  checkShared('an append through one ledger is hinted at by the other', async (one, other) => {
    const head = await startRun(one)
    await waitForHint(other, () => appendAt(one, head, [saying('a')]), reaches(other, 2))
  }),
  checkShared(
    'what one ledger appended the tail of the other yields, also after a cursor of the first',
    async (one, other) => {
      const head = await startRun(one)
      const [started] = await tailUntil(one, 1)
      await appendAt(one, head, [saying('a')], barrier)
      const [next] = await tailUntil(other, 1, started?.cursor)
      requireEqual(next?.event, stampFacts(run, [saying('a')], { afterSeq: 1 })[0], 'the event')
      requireEqual(await collect(other.tail()), await collect(one.tail()), 'the tail of the other')
    },
  ),
  checkShared(
    'ledgers that append at once leave one order, the same for both, without a gap or a repeat',
    async (one, other) => {
      await Promise.all([startRun(one, run), startRun(other, otherRun)])
      const grow = async (ledger: Ledger, runId: RunId): Promise<void> => {
        for (let seq = 1; seq < 60; seq++)
          await appendAt(ledger, { seq, epoch: 1 }, [saying(`${seq}`)], { runId })
      }
      const [seen] = await Promise.all([tailUntil(one, 120), grow(one, run), grow(other, otherRun)])
      for (const runId of [run, otherRun]) {
        const seqs = seen.filter(({ event }) => event.runId === runId).map(({ event }) => event.seq)
        const gapless = Array.from({ length: 60 }, (_, index) => index + 1)
        requireEqual(seqs, gapless, `the seqs of run ${runId} in the tail`)
      }
      requireEqual(await collect(other.tail()), seen, 'the tail of the other')
    },
  ),
  checkShared('a follower of every run is hinted at what another ledger appended', async (one, other) => {
    await startRun(one)
    await waitForHint(other, () => startRun(one, otherRun), reaches(other, 1, otherRun), other.changes())
  }),
  checkShared('closing one ledger leaves the other open', async (one, other) => {
    const head = await startRun(one)
    await one.close()
    requireEqual(await appendAt(other, head, [saying('a')], barrier), { seq: 2, epoch: 1 }, 'the head')
    await requireRecord(other, stampFacts(run, [facts.run_started, saying('a')]))
  }),
]
