import { firstValueFrom, type Observable } from 'rxjs'
import type { Ledger } from '../../ledger/ledger.ts'
import { everyFact } from '../samples/sample-facts.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { requireEqual } from '../contract/requirement.ts'
import { appendAt, otherRun, run, saying, startRun, steering } from '../contract/scenario.ts'

/**
 * Resolves once a hint came after which the condition holds. A hint may come for nothing, so the first proves little;
 * one that never comes leaves the case hanging, for the runner's time limit.
 */
export async function hinted(
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

/** Hints, without content, that a run's events or inbox may have changed. */
export const changeCases: readonly LedgerContractCase[] = [
  {
    promise: 'an append is hinted at, and the hint comes when it can be read',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      await hinted(
        ledger,
        () => appendAt(ledger, head, [saying('a')]),
        async () => (await ledger.head(run))?.seq === 2,
      )
    },
  },
  {
    promise: 'a put is hinted at, and the hint comes when it can be read',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      await hinted(
        ledger,
        () => ledger.put(run, steering('k1')),
        async () => (await ledger.inbox(run)).length === 1,
      )
    },
  },
  {
    promise: 'a follower of an inbox is hinted at what is put into it and at what an append takes out of it',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      const options = { durability: 'barrier', consumedInboxKeys: ['k1'] } as const
      await hinted(
        ledger,
        () => ledger.put(run, steering('k1')),
        async () => (await ledger.inbox(run)).length === 1,
        ledger.changes(run, 'inbox'),
      )
      await hinted(
        ledger,
        () => ledger.append(run, { expectedSeq: head.seq, epoch: head.epoch }, [], options),
        async () => (await ledger.inbox(run)).length === 0,
        ledger.changes(run, 'inbox'),
      )
    },
  },
  {
    promise: 'the first append of a run reaches those who waited for it',
    async run(open) {
      const ledger = await open()
      await hinted(
        ledger,
        () => startRun(ledger),
        async () => (await ledger.head(run))?.seq === 1,
      )
    },
  },
  {
    promise: 'a follower of every run is hinted at appends and commands of each, new ones too',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      await hinted(
        ledger,
        () => startRun(ledger, otherRun),
        async () => (await ledger.head(otherRun))?.seq === 1,
        ledger.changes(),
      )
      await hinted(
        ledger,
        () => appendAt(ledger, { seq: 1, epoch: 1 }, [saying('a')]),
        async () => (await ledger.head(run))?.seq === 2,
        ledger.changes(),
      )
      await hinted(
        ledger,
        () => ledger.put(otherRun, steering('k1')),
        async () => (await ledger.inbox(otherRun)).length === 1,
        ledger.changes(),
      )
    },
  },
  {
    promise: 'hints carry no content',
    async run(open) {
      const ledger = await open()
      // Together, so that no rejection stays unhandled if the append fails.
      const [hint] = await Promise.all([firstValueFrom(ledger.changes(run)), startRun(ledger)])
      requireEqual(hint ?? null, null, 'the hint')
    },
  },
  {
    promise: 'every subscriber hears for itself, and one that left hears no more',
    async run(open) {
      const ledger = await open()
      let hintCount = 0
      // What goes wrong with the feed the others hear too.
      const first = ledger.changes(run).subscribe({ next: () => hintCount++, error: () => {} })
      await hinted(
        ledger,
        () => startRun(ledger),
        async () => (await ledger.head(run)) !== undefined,
      )
      first.unsubscribe()
      const before = hintCount
      await hinted(
        ledger,
        () => appendAt(ledger, { seq: 1, epoch: 1 }, [everyFact(run).cancel_requested]),
        async () => (await ledger.head(run))?.seq === 2,
      )
      requireEqual(before > 0, true, 'whether the first subscriber heard anything')
      requireEqual(hintCount, before, 'what it heard after it left')
    },
  },
  {
    promise: 'a follower that reads at each hint sees every event once, in order',
    async run(open) {
      const ledger = await open()
      const seen: number[] = []
      const head = await startRun(ledger)
      await hinted(
        ledger,
        async () => {
          for (let seq = head.seq; seq < 6; seq++)
            await appendAt(ledger, { ...head, seq }, [saying(`${seq}`)])
        },
        async () => {
          for await (const event of ledger.read(run, { fromSeq: (seen.at(-1) ?? 0) + 1 })) {
            if (event.seq === (seen.at(-1) ?? 0) + 1) seen.push(event.seq)
          }
          return seen.length === 6
        },
      )
      requireEqual(seen, [1, 2, 3, 4, 5, 6], 'what the follower saw')
    },
  },
]
