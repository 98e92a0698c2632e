import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { deriveRunId } from '@tallystick/core/internal'
import type { Fact } from '@tallystick/core/vocabulary'
import { sampleFacts } from '../samples/events.ts'
import { sampleCallId, sampleRunId, stampFacts } from '../samples/values.ts'
import {
  appendAt,
  appendFirst,
  startInSession,
  barrier,
  collect,
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

const facts = sampleFacts(run)
const otherCall = sampleCallId(run, 2)

/** Refused at every head, also when it differs from the recorded fact, and also within one batch. */
function recordedOnce(promise: string, first: Fact, second: Fact): LedgerContractCase {
  return checkLedger(promise, async (ledger) => {
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
  })
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
  checkRun('a batch that states one fact twice is refused whole', async (ledger, head) => {
    const before = await collect(ledger.read(run))
    await requireConflict(
      appendAt(ledger, head, [saying('a'), facts.tool_result, facts.tool_result]),
      'unique',
    )
    await requireRecord(ledger, before)
  }),
  checkLedger(
    'a run of an idempotency key begins once, of several writers at the same moment',
    async (ledger) => {
      const runId = deriveRunId('order 7')
      const begin = (agent: string): Promise<unknown> => {
        const started = { ...sampleFacts(runId).run_started, agent, idempotencyKey: 'order 7' }
        const { sessionId: _session, sessionPlace: _place, ...alone } = started
        return appendFirst(ledger, stampFacts(runId, [alone]))
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
  ),
  checkLedger('a new run whose first append states one fact twice is not made', async (ledger) => {
    await requireConflict(startRun(ledger, run, [facts.run_finished, facts.run_finished]), 'unique')
    requireEqual(await collect(ledger.runs()), [], 'the runs')
    requireEqual(await startRun(ledger), { seq: 1, epoch: 1 }, 'the head of the run made after it')
  }),
  checkLedger(
    'feedback behind the end of a run is recorded, once at each head, and the run stays ended',
    async (ledger) => {
      const head = await startRun(ledger, run, [facts.run_finished])
      const given = [0, 1].map((score) => appendAt(ledger, head, [{ ...facts.feedback_given, score }]))
      const settled = await Promise.allSettled(given)
      requireEqual(
        settled.map(({ status }) => status).toSorted(),
        ['fulfilled', 'rejected'],
        'how two at once end',
      )
      requireEqual(
        await appendAt(ledger, { ...head, seq: head.seq + 1 }, [facts.feedback_given]),
        { ...head, seq: head.seq + 2 },
        'the head',
      )
      await requireConflict(ledger.put(run, steering('late')), 'ended')
      requireEqual(
        await collect(ledger.due({ before: Number.MAX_SAFE_INTEGER, limit: 9 })),
        [],
        'the runs that are due',
      )
      const found = await collect(ledger.find({ runId: run, types: ['feedback_given'] }))
      requireEqual(
        found.map(({ seq }) => seq),
        [head.seq + 1, head.seq + 2],
        'the feedback',
      )
    },
  ),
  checkLedger('a later attempt, another call and another run state facts of their own', async (ledger) => {
    const head = await startRun(ledger, run, [facts.tool_started, facts.approval_decided, facts.tool_result])
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
  }),
  checkRun('events that may repeat are not facts that are recorded once', async (ledger, head) => {
    const again = Object.values(facts).filter(
      ({ type }) =>
        !['run_finished', 'tool_result', 'tool_started', 'approval_decided', 'background_ended'].includes(
          type,
        ),
    )
    // A fork asks again about decisions of the run that it shares its first events with.
    again.push({ ...facts.approval_decided, elsewhere: true })
    await appendAt(ledger, head, again)
    await appendAt(ledger, { ...head, seq: head.seq + again.length }, again)
    const record = [facts.run_started, ...again, ...again]
    await requireRecord(ledger, stampFacts(run, record))
  }),
  checkLedger('a recorded fact keeps out its second under a later epoch', async (ledger) => {
    await startRun(ledger, run, [facts.tool_started, facts.tool_result])
    const head = await ledger.acquire(run)
    await requireConflict(appendAt(ledger, head, [facts.tool_started]), 'unique')
    await requireConflict(appendAt(ledger, head, [facts.tool_result]), 'unique')
  }),
  checkLedger('an append refused for a second fact takes nothing from the inbox', async (ledger) => {
    const head = await startRun(ledger, run, [facts.approval_decided])
    await ledger.put(run, steering('k1'))
    await requireConflict(
      appendAt(ledger, head, [facts.approval_decided], { consumedInboxKeys: ['k1'] }),
      'unique',
    )
    requireEqual(await ledger.inbox(run), [steering('k1')], 'the inbox')
  }),
]

/** Names that databases cut off, refuse or change, and what an unchecked database makes of them. */
const oddNames: readonly (readonly [string, string])[] = [
  ['before\0after', 'before'],
  ['\0', ''],
  ['half \ud800', 'half \ufffd'],
  ['\udc00 half', '\ufffd half'],
]

/** Appends that name something by such a name: a run, a session, a tool call, a type. */
function listAppends(name: string): readonly (readonly [RunId, RuntimeEvent])[] {
  const started = stampFacts(otherRun, [sampleFacts(otherRun).run_started])
  const second = stampFacts(run, [saying('a')], { afterSeq: 1 })
  const changed = (events: readonly RuntimeEvent[], change: object): RuntimeEvent => {
    return { ...(events[0] as RuntimeEvent), ...change }
  }
  return [
    [name as RunId, changed(started, { runId: name })],
    [otherRun, changed(started, { sessionId: name, sessionPlace: 1 })],
    [run, changed(second, { toolCallId: name })],
    [run, changed(second, { type: name })],
  ]
}

/** Names that not every store can hold are refused, and match nothing. */
export const nameCases: readonly LedgerContractCase[] = oddNames.map(([name, mended]) =>
  checkLedger(
    `an id or a type with a NUL or half a surrogate pair is refused, and names nothing: ${JSON.stringify(name)}`,
    async (ledger) => {
      const session = { sessionId: mended, sessionPlace: 1 }
      const like = stampFacts(run, [{ ...sampleFacts(run).run_started, ...session }])
      await appendFirst(ledger, like)
      for (const [runId, event] of listAppends(name)) {
        const expected = { expectedSeq: event.seq - 1, epoch: 1 }
        await requireRefusal(ledger.append(runId, expected, [event], barrier), 'configuration')
      }
      await requireRecord(ledger, like)
      require((await ledger.head(name as RunId)) === undefined, 'the run should not be there')
      requireEqual(await collect(ledger.read(name as RunId)), [], 'the events of the run')
      requireEqual(await collect(ledger.find({ runId: name as RunId })), [], 'what is found of the run')
      requireEqual(await collect(ledger.runs({ sessionId: name })), [], 'the runs of the session')
      requireEqual(await collect(ledger.find({ sessionId: name })), [], 'what is found of the session')
    },
  ),
)

async function listRuns(ledger: Ledger, sessionId: string): Promise<readonly RunId[]> {
  return (await collect(ledger.runs({ sessionId }))).map(({ runId }) => runId)
}

const [first, second, third] = [1, 2, 3].map(sampleRunId) as [RunId, RunId, RunId]

/** Sessions: runs that follow each other, each at a place of its own. */
export const sessionCases: readonly LedgerContractCase[] = [
  checkLedger('the runs of a session are listed by themselves, the last place first', async (ledger) => {
    await startInSession(ledger, first, 'a', 1)
    await startInSession(ledger, second, 'b', 1)
    await startInSession(ledger, third, 'a', 2)
    await appendAt(ledger, { seq: 1, epoch: 1 }, [saying('x')], { runId: first })
    const listed = [
      { runId: third, head: { seq: 1, epoch: 1 }, sessionId: 'a', sessionPlace: 2 },
      { runId: first, head: { seq: 2, epoch: 1 }, sessionId: 'a', sessionPlace: 1 },
    ]
    requireEqual(await collect(ledger.runs({ sessionId: 'a' })), listed, 'the runs of session a')
    requireEqual(await listRuns(ledger, 'b'), [second], 'the runs of session b')
    requireEqual((await collect(ledger.runs())).length, 3, 'the number of all runs')
  }),
  checkLedger('a session that no run has begun has no runs', async (ledger) => {
    await startInSession(ledger, first, 'a', 1)
    requireEqual(await listRuns(ledger, 'A'), [], 'the runs of another session')
    requireEqual(await listRuns(ledger, ''), [], 'the runs of a session without a name')
  }),
  checkLedger('a place of a session is taken once: the second run at it is not made', async (ledger) => {
    await startInSession(ledger, first, 'a', 1)
    await requireConflict(startInSession(ledger, second, 'a', 1), 'unique')
    requireEqual((await ledger.head(second)) ?? null, null, 'the head of the run that was refused')
    requireEqual(await listRuns(ledger, 'a'), [first], 'the runs of the session')
    requireEqual(
      await startInSession(ledger, second, 'a', 2),
      { seq: 1, epoch: 1 },
      'the head at the next place',
    )
  }),
  checkLedger('of many runs that want one place of a session at once, one gets it', async (ledger) => {
    const wanted = Array.from({ length: 8 }, (_, index) =>
      startInSession(ledger, sampleRunId(index + 1), 'a', 1),
    )
    const outcomes = await Promise.allSettled(wanted)
    const got = outcomes.filter(({ status }) => status === 'fulfilled')
    requireEqual(got.length, 1, 'the number of runs that got the place')
    requireEqual((await collect(ledger.runs())).length, 1, 'the number of runs')
  }),
  checkLedger('the same place of another session is another place', async (ledger) => {
    await startInSession(ledger, first, 'a', 1)
    await startInSession(ledger, second, 'b', 1)
    requireEqual(await listRuns(ledger, 'b'), [second], 'the runs of the other session')
  }),
  checkLedger(
    'the first append of a run in a session is recognised when its acknowledgement was lost',
    async (ledger) => {
      await startInSession(ledger, first, 'a', 1)
      requireEqual(
        await startInSession(ledger, first, 'a', 1),
        { seq: 1, epoch: 1 },
        'the head at the second try',
      )
      requireEqual(await listRuns(ledger, 'a'), [first], 'the runs of the session')
    },
  ),
]
