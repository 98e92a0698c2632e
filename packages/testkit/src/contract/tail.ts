import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import type { TailCursor, TailedEvent } from '@tallystick/core/vocabulary'
import { sampleFacts } from '../samples/events.ts'
import { stampFacts } from '../samples/values.ts'
import {
  appendAt,
  barrier,
  collect,
  checkLedger,
  type LedgerContractCase,
  otherRun,
  require,
  requireEqual,
  requireRefusal,
  run,
  saying,
  startRun,
  tailUntil,
} from './scenario.ts'

const facts = Array.from({ length: 9 }, (_, index) => saying(`delta ${index}`))

function toEvents(tailed: readonly TailedEvent[]): readonly RuntimeEvent[] {
  return tailed.map(({ event }) => event)
}

/** Two runs that grow in turns, one event at a time. Answers their events in the order in which they were appended. */
async function growInTurns(ledger: Ledger): Promise<readonly RuntimeEvent[]> {
  const written: RuntimeEvent[] = []
  for (const [index, fact] of [sampleFacts(run).run_started, ...facts].entries()) {
    for (const runId of [run, otherRun]) {
      const [event] = stampFacts(runId, [index === 0 ? sampleFacts(runId).run_started : fact], {
        afterSeq: index,
      })
      const durability = index % 3 === 0 ? 'barrier' : 'lazy'
      if (event) await ledger.append(runId, { expectedSeq: index, epoch: 1 }, [event], { durability })
      if (event) written.push(event)
    }
  }
  return written
}

/** Appends to a run, one event after the other. */
async function grow(ledger: Ledger, runId: RunId, fromSeq: number, toSeq: number): Promise<void> {
  for (let seq = fromSeq; seq < toSeq; seq++)
    await appendAt(ledger, { seq, epoch: 1 }, [saying(`${seq}`)], { runId })
}

/** Fails the case unless the events of each run come in order of seq, from 1 on, each once. */
function requireGapless(events: readonly RuntimeEvent[]): void {
  for (const runId of [run, otherRun]) {
    const seqs = events.filter((event) => event.runId === runId).map(({ seq }) => seq)
    const gapless = seqs.map((_, index) => index + 1)
    requireEqual(seqs, gapless, `the seqs of run ${runId} in the tail`)
  }
}

/** Every event of every run in one order, in which each place is a cursor. */
export const tailCases: readonly LedgerContractCase[] = [
  checkLedger(
    'a tail yields every event of every run once, in the order of appends that came after each other',
    async (ledger) => {
      const written = await growInTurns(ledger)
      requireEqual(toEvents(await tailUntil(ledger, written.length)), written, 'the tail')
    },
  ),
  checkLedger('a tail continues after each of its cursors with all that comes after it', async (ledger) => {
    const written = await growInTurns(ledger)
    const all = await tailUntil(ledger, written.length)
    for (const [index, { cursor }] of all.entries()) {
      const rest = await collect(ledger.tail(cursor))
      requireEqual(rest, all.slice(index + 1), `the tail after event ${index + 1}`)
    }
  }),
  checkLedger('cursors are texts, another one at each event, and the same at every look', async (ledger) => {
    const written = await growInTurns(ledger)
    const all = await tailUntil(ledger, written.length)
    const cursors = all.map(({ cursor }) => cursor)
    require(cursors.every((cursor) => typeof cursor === 'string' && cursor !== ''), 'a cursor is not text')
    requireEqual(new Set(cursors).size, written.length, 'the number of different cursors')
    requireEqual(await collect(ledger.tail()), all, 'the second look')
  }),
  checkLedger('a tail of nothing is empty, and so is one after the last event', async (ledger) => {
    requireEqual(await collect(ledger.tail()), [], 'the tail of an empty ledger')
    await startRun(ledger)
    const [only] = await tailUntil(ledger, 1)
    requireEqual(await collect(ledger.tail(only?.cursor)), [], 'the tail after the last event')
  }),
  checkLedger(
    'a cursor that does not belong to an event of the ledger is refused, and nothing is yielded for it',
    async (ledger) => {
      await growInTurns(ledger)
      const [first] = await tailUntil(ledger, 1)
      const known = first?.cursor ?? ''
      const strangers: readonly TailCursor[] = [
        '',
        'nonsense',
        '0',
        '1',
        '-1',
        '99999999999999999999',
        `${known} `,
        ` ${known}`,
        `${known}0`,
        known.slice(1),
        known.slice(0, -1),
        known.replaceAll(/\d/g, '9'),
        'x'.repeat(9999),
      ]
      for (const stranger of strangers) await requireRefusal(collect(ledger.tail(stranger)), 'configuration')
    },
  ),
  checkLedger(
    'a tail that is stopped half-way leaves the ledger free to append, and its last cursor continues',
    async (ledger) => {
      const written = await growInTurns(ledger)
      await tailUntil(ledger, written.length)
      let last: TailedEvent | undefined
      for await (const tailed of ledger.tail()) {
        last = tailed
        if (tailed.event.seq === 4) break
      }
      await appendAt(ledger, { seq: 10, epoch: 1 }, [saying('k')], barrier)
      const rest = toEvents(await tailUntil(ledger, written.length - 6, last?.cursor))
      requireEqual(rest.slice(0, -1), written.slice(7), 'what stood before')
      requireEqual(rest.at(-1), stampFacts(run, [saying('k')], { afterSeq: 10 })[0], 'what came then')
    },
  ),
  checkLedger(
    'a tail ends although as much is appended as it yields, and the next one yields the rest',
    async (ledger) => {
      // More than a store reads at once, so that it meets events appended during the read.
      const many = Array.from({ length: 400 }, (_, index) => saying(`${index}`))
      let head = await startRun(ledger, run, many)
      await tailUntil(ledger, 401)
      const seen: TailedEvent[] = []
      for await (const tailed of ledger.tail()) {
        seen.push(tailed)
        require(seen.length < 2000, 'a tail has no end while it is appended to')
        head = await appendAt(ledger, head, [saying(`beside ${seen.length}`)])
      }
      const rest = await tailUntil(ledger, head.seq - seen.length, seen.at(-1)?.cursor)
      const seqs = [...seen, ...rest].map(({ event }) => event.seq)
      const gapless = seqs.map((_, index) => index + 1)
      requireEqual(seqs, gapless, 'the seqs')
      requireEqual(seqs.length, head.seq, 'the number of events')
    },
  ),
  checkLedger(
    'tails that continue from each other miss nothing and repeat nothing while runs are appended to at once',
    async (ledger) => {
      await Promise.all([startRun(ledger, run), startRun(ledger, otherRun)])
      const growth = { isOver: false }
      const grown = Promise.allSettled([grow(ledger, run, 1, 60), grow(ledger, otherRun, 1, 60)]).finally(
        () => (growth.isOver = true),
      )
      const seen: TailedEvent[] = []
      while (!growth.isOver) {
        seen.push(...(await collect(ledger.tail(seen.at(-1)?.cursor))))
        requireGapless(toEvents(seen))
      }
      await grown
      seen.push(...(await tailUntil(ledger, 120 - seen.length, seen.at(-1)?.cursor)))
      requireGapless(toEvents(seen))
      requireEqual(seen.length, 120, 'the number of events')
      requireEqual(await collect(ledger.tail()), seen, 'the tail from the first event on')
    },
  ),
  checkLedger('a tail yields thousands of events whole', async (ledger) => {
    const many = Array.from({ length: 3000 }, (_, index) => saying(`${index}`))
    await startRun(ledger, otherRun)
    await startRun(ledger, run, many)
    const written = [
      ...stampFacts(otherRun, [sampleFacts(otherRun).run_started]),
      ...stampFacts(run, [sampleFacts(run).run_started, ...many]),
    ]
    requireEqual(toEvents(await tailUntil(ledger, written.length)), written, 'the tail')
  }),
  checkLedger(
    'a refused append leaves nothing in the tail, and take-overs do not block it',
    async (ledger) => {
      const old = await startRun(ledger)
      const head = await ledger.acquire(run)
      await requireRefusal(appendAt(ledger, old, [saying('late')]), 'ledger_conflict')
      await appendAt(ledger, head, [saying('a')], barrier)
      const written = [
        ...stampFacts(run, [sampleFacts(run).run_started]),
        ...stampFacts(run, [saying('a')], { afterSeq: 1, epoch: 2 }),
      ]
      requireEqual(toEvents(await tailUntil(ledger, 2)), written, 'the tail')
    },
  ),
  checkLedger('tails at once do not disturb each other', async (ledger) => {
    const written = await growInTurns(ledger)
    const all = await tailUntil(ledger, written.length)
    const tails = [ledger.tail(), ledger.tail(all[4]?.cursor), ledger.tail()]
    const [left, middle, right] = await Promise.all(tails.map(collect))
    requireEqual(left, all, 'the one')
    requireEqual(middle, all.slice(5), 'the one after the fifth event')
    requireEqual(right, all, 'the other')
  }),
]
