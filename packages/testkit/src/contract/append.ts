import { type Ledger, LedgerConflictError, type RuntimeEvent } from '@tallystick/core'
import { sampleFacts } from '../samples/events.ts'
import { stampFacts } from '../samples/values.ts'
import {
  appendAt,
  appendFirst,
  barrier,
  collect,
  lazy,
  checkLedger,
  checkRun,
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

const started = stampFacts(run, [sampleFacts(run).run_started])

/** One atomic compare-and-swap: all events or none. */
export const appendCases: readonly LedgerContractCase[] = [
  checkLedger('the first append makes the run and answers its head', async (ledger) => {
    requireEqual(await appendFirst(ledger, started), { seq: 1, epoch: 1 }, 'the head')
    await requireRecord(ledger, started)
  }),
  checkLedger('an append moves the head by the number of its events', async (ledger) => {
    const first = await startRun(ledger)
    const second = await appendAt(ledger, first, [saying('a'), saying('b'), saying('c')])
    requireEqual(second, { seq: 4, epoch: 1 }, 'the head after three more events')
    requireEqual(
      await appendAt(ledger, second, [saying('d')]),
      { seq: 5, epoch: 1 },
      'the head after one more',
    )
    requireEqual(await ledger.head(run), { seq: 5, epoch: 1 }, 'the head as it is read')
  }),
  checkLedger(
    'appends of a run that are begun before the first of them is answered are carried out in their order',
    async (ledger) => {
      const start = startRun(ledger)
      const others = [1, 2, 3].map((seq) => appendAt(ledger, { seq, epoch: 1 }, [saying(`after ${seq}`)]))
      requireEqual(
        (await Promise.all([start, ...others])).map(({ seq }) => seq),
        [1, 2, 3, 4],
        'the heads that the appends answered',
      )
      requireEqual((await collect(ledger.read(run))).length, 4, 'the number of events')
    },
  ),
  checkRun('what was appended lazily is read at once', async (ledger, head) => {
    await appendAt(ledger, head, [saying('a')], lazy)
    requireEqual((await collect(ledger.read(run))).length, 2, 'the number of events')
  }),
  checkLedger('an append after the head is a seq conflict and writes nothing', async (ledger) => {
    const head = await startRun(ledger, run, [saying('a'), saying('b')])
    const before = await collect(ledger.read(run))
    await requireConflict(appendAt(ledger, { ...head, seq: 1 }, [saying('other')]), 'seq')
    await requireRecord(ledger, before)
  }),
  checkRun('an append ahead of the head is a seq conflict and writes nothing', async (ledger, head) => {
    await requireConflict(appendAt(ledger, { ...head, seq: 2 }, [saying('a')]), 'seq')
    await requireRecord(ledger, started)
  }),
  checkRun('an append of another epoch is an epoch conflict and writes nothing', async (ledger, head) => {
    await requireConflict(appendAt(ledger, { ...head, epoch: 2 }, [saying('a')]), 'epoch')
    await requireRecord(ledger, started)
  }),
  checkLedger(
    'a first append that expects another head than seq 0 and epoch 1 is a conflict and makes no run',
    async (ledger) => {
      await requireConflict(appendAt(ledger, { seq: 3, epoch: 1 }, [saying('a')]), 'seq')
      await requireConflict(appendAt(ledger, { seq: 0, epoch: 2 }, [saying('a')]), 'epoch')
      requireEqual((await ledger.head(run)) ?? null, null, 'the head of a run that is not there')
      requireEqual(await collect(ledger.runs()), [], 'the runs')
    },
  ),
  checkRun(
    'of two appends at once with the same expected head, one is written and one is refused',
    async (ledger, head) => {
      const racing = [appendAt(ledger, head, [saying('left')]), appendAt(ledger, head, [saying('right')])]
      const endings = await Promise.allSettled(racing)
      requireEqual(endings.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'], 'the endings')
      const refused = endings.find((ending) => ending.status === 'rejected')
      require(refused?.reason instanceof
        LedgerConflictError, 'the loser of a race gets no LedgerConflictError')
      const winner = endings[0]?.status === 'fulfilled' ? 'left' : 'right'
      await requireRecord(ledger, [...started, ...stampFacts(run, [saying(winner)], { afterSeq: 1 })])
    },
  ),
  checkLedger('two first appends at once make one run', async (ledger) => {
    const facts = sampleFacts(run)
    const racing = [
      appendAt(ledger, { seq: 0, epoch: 1 }, [facts.run_started]),
      appendAt(ledger, { seq: 0, epoch: 1 }, [saying('no start')]),
    ]
    const endings = await Promise.allSettled(racing)
    requireEqual(endings.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'], 'the endings')
    requireEqual((await collect(ledger.runs())).length, 1, 'the number of runs')
    requireEqual(await ledger.head(run), { seq: 1, epoch: 1 }, 'the head')
  }),
  checkRun('an append of no events answers the head and writes nothing', async (ledger, head) => {
    requireEqual(await appendAt(ledger, head, []), head, 'the head')
    requireEqual(await appendAt(ledger, head, [], barrier), head, 'the head at a barrier')
    await requireRecord(ledger, started)
  }),
  checkRun('an append of no events checks the head all the same', async (ledger, head) => {
    await requireConflict(appendAt(ledger, { ...head, seq: 0 }, []), 'seq')
    await requireConflict(appendAt(ledger, { ...head, epoch: 2 }, []), 'epoch')
  }),
  checkLedger('an append of no events makes no run', async (ledger) => {
    requireEqual(await appendAt(ledger, { seq: 0, epoch: 1 }, []), { seq: 0, epoch: 1 }, 'the head')
    requireEqual((await ledger.head(run)) ?? null, null, 'the head of a run that is not there')
    requireEqual(await collect(ledger.runs()), [], 'the runs')
  }),
  checkLedger('a batch of a thousand events keeps its order', async (ledger) => {
    const facts = Array.from({ length: 1000 }, (_, index) => saying(`delta ${index}`))
    requireEqual(await appendAt(ledger, await startRun(ledger), facts), { seq: 1001, epoch: 1 }, 'the head')
    await requireRecord(ledger, [...started, ...stampFacts(run, facts, { afterSeq: 1 })])
  }),
]

const batch = stampFacts(run, [saying('a'), saying('b')], { afterSeq: 1 })

/** Sends the batch again, as a writer does that never heard whether it was written. */
function sendAgain(ledger: Ledger, events: readonly RuntimeEvent[] = batch): Promise<unknown> {
  return ledger.append(run, { expectedSeq: 1, epoch: 1 }, events, barrier)
}

/** A writer that lost the acknowledgement may append again; another writer cannot pretend to be it. */
export const lostAcknowledgementCases: readonly LedgerContractCase[] = [
  checkRun(
    'the same append again is a lost acknowledgement: it answers the same head and doubles nothing',
    async (ledger) => {
      requireEqual(await sendAgain(ledger), { seq: 3, epoch: 1 }, 'the head at first')
      requireEqual(await sendAgain(ledger), { seq: 3, epoch: 1 }, 'the head at the second try')
      await requireRecord(ledger, [...started, ...batch])
    },
  ),
  checkLedger('the first append of a run again is a lost acknowledgement', async (ledger) => {
    requireEqual(await startRun(ledger), { seq: 1, epoch: 1 }, 'the head at first')
    requireEqual(await startRun(ledger), { seq: 1, epoch: 1 }, 'the head at the second try')
    await requireRecord(ledger, started)
  }),
  checkRun('an append that lies after the head is recognised by its content', async (ledger) => {
    await sendAgain(ledger)
    await appendAt(ledger, { seq: 3, epoch: 1 }, [saying('c')])
    requireEqual(await sendAgain(ledger), { seq: 3, epoch: 1 }, 'the head after the events that were sent')
    await requireRecord(ledger, [...started, ...batch, ...stampFacts(run, [saying('c')], { afterSeq: 3 })])
  }),
  checkRun('the same seq and epoch with other content is a conflict', async (ledger) => {
    await sendAgain(ledger)
    await requireConflict(
      sendAgain(ledger, stampFacts(run, [saying('a'), saying('x')], { afterSeq: 1 })),
      'seq',
    )
    await requireRecord(ledger, [...started, ...batch])
  }),
  checkRun('the same content at another time is other content', async (ledger) => {
    await sendAgain(ledger)
    await requireConflict(
      sendAgain(
        ledger,
        batch.map((event) => ({ ...event, at: event.at + 1 })),
      ),
      'seq',
    )
    await requireRecord(ledger, [...started, ...batch])
  }),
  checkRun('an append that is recorded only in part is a conflict', async (ledger) => {
    await sendAgain(ledger)
    const longer = stampFacts(run, [saying('a'), saying('b'), saying('c')], { afterSeq: 1 })
    await requireConflict(sendAgain(ledger, longer), 'seq')
    await requireRecord(ledger, [...started, ...batch])
  }),
  checkRun(
    'a lost acknowledgement is recognised after a take-over, and tells nothing of the new epoch',
    async (ledger) => {
      await sendAgain(ledger)
      await ledger.acquire(run)
      requireEqual(await sendAgain(ledger), { seq: 3, epoch: 1 }, 'the head that the old writer left')
      await requireConflict(appendAt(ledger, { seq: 3, epoch: 1 }, [saying('c')]), 'epoch')
      await requireRecord(ledger, [...started, ...batch], { epoch: 2 })
    },
  ),
  checkRun('the same facts signed with a newer epoch are no lost acknowledgement', async (ledger) => {
    await sendAgain(ledger)
    await ledger.acquire(run)
    await requireConflict(appendAt(ledger, { seq: 1, epoch: 2 }, [saying('a'), saying('b')]), 'seq')
    await requireRecord(ledger, [...started, ...batch], { epoch: 2 })
  }),
  checkRun('a lost acknowledgement leaves what it took out of the inbox', async (ledger, head) => {
    await ledger.put(run, steering('k1'))
    await ledger.put(run, steering('k2'))
    await appendAt(ledger, head, [saying('a')], { consumedInboxKeys: ['k1'] })
    await appendAt(ledger, head, [saying('a')], { consumedInboxKeys: ['k1'] })
    requireEqual(await ledger.inbox(run), [steering('k2')], 'the inbox')
  }),
]

const sound = stampFacts(run, [saying('a'), saying('b'), saying('c')], { afterSeq: 1 })

/** A batch of three whose second event is changed; its message has to say what is wrong. */
function refuses(promise: string, change: object, words: string): LedgerContractCase {
  return checkRun(promise, async (ledger) => {
    await ledger.put(run, steering('k1'))
    const batch = sound.map((event, index) => (index === 1 ? { ...event, ...change } : event))
    const append = ledger.append(run, { expectedSeq: 1, epoch: 1 }, batch, {
      ...barrier,
      consumedInboxKeys: ['k1'],
    })
    const { message } = await requireRefusal(append, 'configuration')
    require(message.includes(words), `the refusal should say "${words}", but says: ${message}`)
    require(message.includes(run), 'the refusal does not name the run')
    await requireRecord(ledger, started)
    requireEqual(await ledger.inbox(run), [steering('k1')], 'the inbox')
    requireEqual(
      await appendAt(ledger, { seq: 1, epoch: 1 }, [saying('d')]),
      { seq: 2, epoch: 1 },
      'the head after it',
    )
  })
}

/** A writer's fault is refused before anything is written, and named. */
export const malformedCases: readonly LedgerContractCase[] = [
  refuses('a gap within a batch is refused', { seq: 4 }, 'seq'),
  refuses('a number given twice within a batch is refused', { seq: 2 }, 'seq'),
  refuses('an event of another run is refused', { runId: otherRun }, otherRun),
  refuses('an event of another epoch than its writer is refused', { epoch: 2 }, 'epoch'),
  refuses('a time that is not a whole number is refused', { at: 1.5 }, 'at'),
  refuses('a time that is not a date is refused', { at: 8_640_000_000_000_001 }, 'at'),
  refuses('what is not a tool call id is refused in its place', { toolCallId: 'call_$(id)' }, 'toolCallId'),
  refuses('a turn that is not there is refused', { turn: undefined }, 'turn'),
  refuses('a number that JSON cannot carry is refused', { part: Number.NaN }, 'NaN'),
  refuses('a value that JSON cannot carry is refused', { text: () => 'late' }, 'function'),
  checkRun('a batch that begins elsewhere than after the expected head is refused', async (ledger) => {
    const late = stampFacts(run, [saying('a')], { afterSeq: 2 })
    await requireRefusal(ledger.append(run, { expectedSeq: 1, epoch: 1 }, late, barrier), 'configuration')
    await requireRecord(ledger, started)
  }),
]
