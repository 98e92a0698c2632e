import type { Ledger, RuntimeEvent } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import type { RunFilter } from '@tallystick/core/vocabulary'
import { sampleFacts } from '../samples/events.ts'
import { sampleRunId, stampFacts } from '../samples/values.ts'
import {
  appendAt,
  startInSession,
  collect,
  checkLedger,
  type LedgerContractCase,
  otherRun,
  requireEqual,
  requireRecord,
  requireRefusal,
  run,
  saying,
  startRun,
} from './scenario.ts'

const facts = Array.from({ length: 9 }, (_, index) => saying(`delta ${index}`))
const ten = stampFacts(run, [sampleFacts(run).run_started, ...facts])

/** Where `startRun` puts a run. */
function toSession(ordinal: number): { readonly sessionId?: string; readonly sessionPlace?: number } {
  const { sessionId, sessionPlace } = sampleFacts(sampleRunId(ordinal)).run_started
  return omitUndefined({ sessionId, sessionPlace })
}

async function startTenEvents(ledger: Ledger): Promise<void> {
  await startRun(ledger, run, facts)
}

/** Events in order of `seq`; bounds are inclusive. */
export const readCases: readonly LedgerContractCase[] = [
  checkLedger('a run is read in order of seq, whole when no bounds are given', async (ledger) => {
    await startTenEvents(ledger)
    requireEqual(await collect(ledger.read(run)), ten, 'the events')
    requireEqual(await collect(ledger.read(run, {})), ten, 'the events of an empty range')
  }),
  checkLedger('bounds are inclusive at both ends', async (ledger) => {
    await startTenEvents(ledger)
    requireEqual(await collect(ledger.read(run, { fromSeq: 4 })), ten.slice(3), 'from 4')
    requireEqual(await collect(ledger.read(run, { toSeq: 4 })), ten.slice(0, 4), 'up to 4')
    requireEqual(await collect(ledger.read(run, { fromSeq: 4, toSeq: 6 })), ten.slice(3, 6), 'from 4 up to 6')
    requireEqual(await collect(ledger.read(run, { fromSeq: 7, toSeq: 7 })), ten.slice(6, 7), 'only 7')
    requireEqual(await collect(ledger.read(run, { fromSeq: 1, toSeq: 10 })), ten, 'from 1 up to 10')
  }),
  checkLedger('a range reaches no further than the run does', async (ledger) => {
    await startTenEvents(ledger)
    requireEqual(await collect(ledger.read(run, { fromSeq: 9, toSeq: 99 })), ten.slice(8), 'from 9 up to 99')
    requireEqual(await collect(ledger.read(run, { fromSeq: 11 })), [], 'from after the end')
    requireEqual(await collect(ledger.read(run, { fromSeq: 6, toSeq: 5 })), [], 'from 6 up to 5')
    requireEqual(await collect(ledger.read(run, { toSeq: 0 })), [], 'up to 0')
    requireEqual(await collect(ledger.read(run, { fromSeq: 0, toSeq: 1 })), ten.slice(0, 1), 'from 0 up to 1')
  }),
  checkLedger('a run that is not there reads as empty', async (ledger) => {
    await startTenEvents(ledger)
    requireEqual(await collect(ledger.read(sampleRunId(9))), [], 'the events')
    requireEqual(await collect(ledger.read(sampleRunId(9), { fromSeq: 2 })), [], 'the events from 2')
  }),
  checkLedger('a read that is stopped half-way leaves the ledger free to append', async (ledger) => {
    await startTenEvents(ledger)
    for await (const event of ledger.read(run)) if (event.seq === 3) break
    requireEqual(
      await appendAt(ledger, { seq: 10, epoch: 1 }, [saying('k')]),
      { seq: 11, epoch: 1 },
      'the head',
    )
  }),
  checkLedger('appending while a read is under way neither stops the one nor the other', async (ledger) => {
    await startTenEvents(ledger)
    const read: RuntimeEvent[] = []
    for await (const event of ledger.read(run, { toSeq: 10 })) {
      read.push(event)
      await appendAt(ledger, { seq: 9 + event.seq, epoch: 1 }, [saying(`beside ${event.seq}`)])
    }
    requireEqual(read, ten, 'the events read')
    requireEqual(await ledger.head(run), { seq: 20, epoch: 1 }, 'the head')
  }),
  checkLedger('two reads at once do not disturb each other', async (ledger) => {
    await startTenEvents(ledger)
    await startRun(ledger, otherRun, facts)
    const [left, right] = await Promise.all([collect(ledger.read(run)), collect(ledger.read(otherRun))])
    requireEqual(left, ten, 'the one run')
    requireEqual(right, stampFacts(otherRun, [sampleFacts(otherRun).run_started, ...facts]), 'the other run')
  }),
  checkLedger('runs that are appended to in turns stay apart', async (ledger) => {
    let [left, right] = [await startRun(ledger), await startRun(ledger, otherRun)]
    for (const fact of facts) {
      left = await appendAt(ledger, left, [fact])
      right = await appendAt(ledger, right, [saying('x'), fact], { runId: otherRun })
    }
    await requireRecord(ledger, ten)
    const doubled = [sampleFacts(otherRun).run_started, ...facts.flatMap((fact) => [saying('x'), fact])]
    await requireRecord(ledger, stampFacts(otherRun, doubled), { runId: otherRun })
  }),
  checkLedger('an empty ledger lists no runs', async (ledger) => {
    requireEqual(await collect(ledger.runs()), [], 'the runs')
  }),
  checkLedger(
    'runs are listed with their heads, the newest first, whatever their ids and later appends',
    async (ledger) => {
      for (const ordinal of [5, 3, 8]) await startRun(ledger, sampleRunId(ordinal))
      await appendAt(ledger, { seq: 1, epoch: 1 }, [saying('a')], { runId: sampleRunId(5) })
      await ledger.acquire(sampleRunId(3))
      const listed = [
        { runId: sampleRunId(8), head: { seq: 1, epoch: 1 }, ...toSession(8) },
        { runId: sampleRunId(3), head: { seq: 1, epoch: 2 }, ...toSession(3) },
        { runId: sampleRunId(5), head: { seq: 2, epoch: 1 }, ...toSession(5) },
      ]
      requireEqual(await collect(ledger.runs()), listed, 'the runs')
    },
  ),
  checkLedger('a list of runs that is stopped half-way leaves the ledger free', async (ledger) => {
    for (const ordinal of [1, 2, 3]) await startRun(ledger, sampleRunId(ordinal))
    for await (const { runId } of ledger.runs()) {
      requireEqual(runId, sampleRunId(3), 'the newest run')
      break
    }
    await startRun(ledger, sampleRunId(4))
    requireEqual((await collect(ledger.runs())).length, 4, 'the number of runs')
  }),
]

/** The ordinals of the runs of a list. */
async function listPlaces(ledger: Ledger, filter: RunFilter): Promise<readonly number[]> {
  const runs = await collect(ledger.runs(filter))
  return runs.map(({ runId }) => Number.parseInt(runId.slice(-12), 16))
}

/** Pages of the list of runs. */
export const listCases: readonly LedgerContractCase[] = [
  checkLedger('a limit cuts the list of runs short', async (ledger) => {
    for (const ordinal of [5, 3, 8]) await startRun(ledger, sampleRunId(ordinal))
    requireEqual(await listPlaces(ledger, { limit: 2 }), [8, 3], 'the first two')
    requireEqual(await listPlaces(ledger, { limit: 9 }), [8, 3, 5], 'the first nine')
    requireEqual(await listPlaces(ledger, { limit: 0 }), [], 'the first none')
  }),
  checkLedger(
    'the last run of a page begins the next, and runs that are made meanwhile move no page',
    async (ledger) => {
      for (const ordinal of [5, 3, 8, 1]) await startRun(ledger, sampleRunId(ordinal))
      requireEqual(await listPlaces(ledger, { limit: 2 }), [1, 8], 'the first page')
      await startRun(ledger, sampleRunId(9))
      requireEqual(await listPlaces(ledger, { before: sampleRunId(8), limit: 1 }), [3], 'the second page')
      requireEqual(await listPlaces(ledger, { before: sampleRunId(3) }), [5], 'the rest')
      requireEqual(await listPlaces(ledger, { before: sampleRunId(5), limit: 2 }), [], 'after the last')
    },
  ),
  checkLedger(
    'the runs of a session are listed by place, whatever the order in which they were made, in pages too',
    async (ledger) => {
      for (const [ordinal, place] of [
        [1, 2],
        [2, 1],
        [3, 4],
        [4, 3],
      ] as const) {
        await startInSession(ledger, sampleRunId(ordinal), 'a', place)
        await startInSession(ledger, sampleRunId(ordinal + 10), 'b', place)
      }
      const sessionId = 'a'
      requireEqual(await listPlaces(ledger, { sessionId }), [3, 4, 1, 2], 'the session')
      requireEqual(await listPlaces(ledger, { sessionId, limit: 2 }), [3, 4], 'the first page')
      requireEqual(
        await listPlaces(ledger, { sessionId, before: sampleRunId(4), limit: 2 }),
        [1, 2],
        'the second page',
      )
    },
  ),
  checkLedger('a page that is to begin after a run that is not in the list is refused', async (ledger) => {
    await startInSession(ledger, sampleRunId(1), 'a', 1)
    await startInSession(ledger, sampleRunId(2), 'b', 1)
    await startRun(ledger, sampleRunId(3))
    for (const [filter, missing] of [
      [{}, 9],
      [{ sessionId: 'a' }, 9],
      [{ sessionId: 'a' }, 2],
      [{ sessionId: 'a' }, 3],
      [{ sessionId: 'c' }, 1],
    ] as const) {
      await requireRefusal(collect(ledger.runs({ ...filter, before: sampleRunId(missing) })), 'run_not_found')
    }
  }),
]
