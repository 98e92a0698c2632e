import { runIdOfKey } from '../../values/ids.ts'
import type { Fact } from '../../events/event.ts'
import { everyFact } from '../samples/sample-facts.ts'
import { sampleCallId, stamped } from '../samples/sample-ids.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { requireConflict, requireEqual } from '../contract/requirement.ts'
import {
  appendAt,
  collect,
  otherRun,
  requireRecord,
  run,
  saying,
  startRun,
  steering,
} from '../contract/scenario.ts'

const facts = everyFact(run)
const otherCall = sampleCallId(run, 2)

/** Refused at every head, also when it differs from the recorded fact, and also within one batch. */
function recordedOnce(promise: string, first: Fact, second: Fact): LedgerContractCase {
  return {
    promise,
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger, run, [first, saying('between')])
      const before = await collect(ledger.read(run))
      await requireConflict(appendAt(ledger, head, [second]), 'unique')
      await requireConflict(appendAt(ledger, head, [saying('a'), first]), 'unique')
      await requireRecord(ledger, before)
      requireEqual(
        await appendAt(ledger, head, [saying('b')]),
        { seq: 4, epoch: 1 },
        'the head after the refusals',
      )
    },
  }
}

/** The facts that may be recorded once, which a right head does not protect. */
export const onceCases: readonly LedgerContractCase[] = [
  recordedOnce('a run ends once', facts.run_finished, { ...facts.run_finished, reason: 'cancelled' }),
  recordedOnce('a call has one result', facts.tool_result, {
    ...facts.tool_result,
    outcome: 'failed',
    content: [],
  }),
  recordedOnce('an attempt of a call starts once', facts.tool_started, { ...facts.tool_started, turn: 2 }),
  recordedOnce('an attempt of a call is decided once', facts.approval_decided, {
    ...facts.approval_decided,
    approved: false,
    by: 'bob',
  }),
  {
    promise: 'a batch that states one fact twice is refused whole',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      const before = await collect(ledger.read(run))
      await requireConflict(
        appendAt(ledger, head, [saying('a'), facts.tool_result, facts.tool_result]),
        'unique',
      )
      await requireRecord(ledger, before)
    },
  },
  {
    promise: 'a run of an idempotency key begins once, of several writers at the same moment',
    async run(open) {
      const ledger = await open()
      const runId = runIdOfKey('order 7')
      const begin = (agent: string): Promise<unknown> => {
        const started = { ...everyFact(runId).run_started, agent, idempotencyKey: 'order 7' }
        const { sessionId: _session, sessionPlace: _place, ...alone } = started
        return ledger.append(runId, { expectedSeq: 0, epoch: 1 }, stamped(runId, [alone]), {
          durability: 'barrier',
        })
      }
      const begun = await Promise.allSettled([begin('one'), begin('two'), begin('three')])
      requireEqual(
        begun.map(({ status }) => status).toSorted(),
        ['fulfilled', 'rejected', 'rejected'],
        'how the beginnings of one run end',
      )
      const events = await collect(ledger.read(runId))
      requireEqual(events.length, 1, 'the events of the run')
      const first = begun.findIndex(({ status }) => status === 'fulfilled')
      const [started] = events
      requireEqual(
        started?.type === 'run_started' && started.agent,
        ['one', 'two', 'three'][first],
        'the agent of the run',
      )
      requireEqual(started?.type === 'run_started' && started.idempotencyKey, 'order 7', 'the key of the run')
    },
  },
  {
    promise: 'a new run whose first append states one fact twice is not made',
    async run(open) {
      const ledger = await open()
      await requireConflict(startRun(ledger, run, [facts.run_finished, facts.run_finished]), 'unique')
      requireEqual(await collect(ledger.runs()), [], 'the runs')
      requireEqual(await startRun(ledger), { seq: 1, epoch: 1 }, 'the head of the run made after it')
    },
  },
  {
    promise: 'a later attempt, another call and another run state facts of their own',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger, run, [
        facts.tool_started,
        facts.approval_decided,
        facts.tool_result,
      ])
      const more: readonly Fact[] = [
        { ...facts.tool_started, attempt: 2 },
        { ...facts.approval_decided, attempt: 2 },
        { ...facts.tool_started, toolCallId: otherCall },
        { ...facts.approval_decided, toolCallId: otherCall },
        { ...facts.tool_result, toolCallId: otherCall },
      ]
      requireEqual(await appendAt(ledger, head, more), { seq: 9, epoch: 1 }, 'the head')
      const copy = [facts.tool_started, facts.approval_decided, facts.tool_result]
      requireEqual(await startRun(ledger, otherRun, copy), { seq: 4, epoch: 1 }, 'the head of the other run')
    },
  },
  {
    promise: 'events that may repeat are not facts that are recorded once',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      const again = Object.values(facts).filter(
        ({ type }) => !['run_finished', 'tool_result', 'tool_started', 'approval_decided'].includes(type),
      )
      // What the run that a fork shares its first events with decided, the fork asks about anew.
      again.push({ ...facts.approval_decided, elsewhere: true })
      await appendAt(ledger, head, again)
      await appendAt(ledger, { ...head, seq: head.seq + again.length }, again)
      const record = [facts.run_started, ...again, ...again]
      await requireRecord(ledger, stamped(run, record))
    },
  },
  {
    promise: 'a recorded fact keeps out its second under a later epoch',
    async run(open) {
      const ledger = await open()
      await startRun(ledger, run, [facts.tool_started, facts.tool_result])
      const head = await ledger.acquire(run)
      await requireConflict(appendAt(ledger, head, [facts.tool_started]), 'unique')
      await requireConflict(appendAt(ledger, head, [facts.tool_result]), 'unique')
    },
  },
  {
    promise: 'an append refused for a second fact takes nothing from the inbox',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger, run, [facts.approval_decided])
      await ledger.put(run, steering('k1'))
      await requireConflict(
        appendAt(ledger, head, [facts.approval_decided], { consumedInboxKeys: ['k1'] }),
        'unique',
      )
      requireEqual(await ledger.inbox(run), [steering('k1')], 'the inbox')
    },
  },
]
