import { LedgerConflictError } from '@tallystick/core'
import type { OutsideCommand } from '@tallystick/core/vocabulary'
import { sampleFacts } from '../samples/events.ts'
import { sampleCallId, sampleMessage, sampleRunId, stampFacts } from '../samples/values.ts'
import {
  appendAt,
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

/** Commands of every kind. */
const commands: {
  readonly [T in OutsideCommand['type']]: readonly Extract<OutsideCommand, { readonly type: T }>[]
} = {
  steer: [{ type: 'steer', message: sampleMessage('Odd: \0 \ud800 "x"'), receipt: 'r1' }],
  queue: [{ type: 'queue', message: sampleMessage(''), receipt: 'r2' }],
  approve: [
    { type: 'approve', toolCallId: sampleCallId(run), by: 'ada', input: { city: 'Busan' } },
    { type: 'approve', toolCallId: sampleCallId(run, 2), by: 'ada' },
    {
      ...{ type: 'approve', toolCallId: sampleCallId(run, 3), by: 'ada', roles: ['finance'] },
      standing: { for: 'session', expiresInMs: 3_600_000 },
    },
  ],
  deny: [{ type: 'deny', toolCallId: sampleCallId(run), by: 'bob', reason: 'No.' }],
  settle: [
    {
      ...{ type: 'settle', toolCallId: sampleCallId(run), outcome: 'success' },
      content: [{ type: 'text', text: 'blue' }],
    },
  ],
  withdraw: [{ type: 'withdraw', standing: sampleCallId(run, 3), by: 'ada', reason: 'Enough.' }],
  cancel: [{ type: 'cancel', by: 'ada', reason: 'Enough.' }, { type: 'cancel' }],
  raise_limit: [{ type: 'raise_limit', limit: 'maxTurns', max: 12, by: 'ada' }],
  set_schedule: [{ type: 'set_schedule', paused: true, by: 'ada', reason: 'Holiday.' }],
}

const finish = sampleFacts(run).run_finished

/** Commands from outside wait here until the run's writer takes them. */
export const inboxCases: readonly LedgerContractCase[] = [
  checkRun('the inbox of a new run is empty', async (ledger) => {
    requireEqual(await ledger.inbox(run), [], 'the inbox')
  }),
  checkRun('a command of every kind comes back from the inbox as it was put', async (ledger) => {
    const entries = Object.values(commands)
      .flat()
      .map((command, index) => ({
        key: `key ${index}`,
        command,
        at: 1_760_000_000_000 + index,
      }))
    for (const entry of entries)
      requireEqual(await ledger.put(run, entry), true, `whether ${entry.key} is new`)
    requireEqual(await ledger.inbox(run), entries, 'the inbox')
    requireEqual(await ledger.inbox(run), entries, 'the inbox read again')
  }),
  checkRun('a put within something that is no transaction of the store is refused', async (ledger) => {
    await requireRefusal(ledger.put(run, steering('k1'), { within: {} }), 'configuration')
    requireEqual(await ledger.inbox(run), [], 'the inbox')
  }),
  checkRun('entries keep the order in which they were put, whatever their keys and times', async (ledger) => {
    const entries = ['k9', 'k1', 'k5'].map((key, index) => ({
      ...steering(key),
      at: 1_760_000_000_000 - index,
    }))
    for (const entry of entries) await ledger.put(run, entry)
    requireEqual(await ledger.inbox(run), entries, 'the inbox')
  }),
  checkRun('the same key put twice is one entry, the first', async (ledger) => {
    requireEqual(await ledger.put(run, steering('k1', 'first')), true, 'the first answer')
    requireEqual(await ledger.put(run, steering('k1', 'second')), false, 'the second answer')
    requireEqual(await ledger.inbox(run), [steering('k1', 'first')], 'the inbox')
  }),
  checkRun('of many puts of one key at once, one is the first', async (ledger) => {
    const answers = await Promise.all(
      ['a', 'b', 'c', 'd'].map((text) => ledger.put(run, steering('k1', text))),
    )
    requireEqual(answers.filter((isNew) => isNew).length, 1, 'how many were new')
    requireEqual((await ledger.inbox(run)).length, 1, 'the entries')
  }),
  checkRun(
    'the same key in another run is another entry, and each is taken by its own run',
    async (ledger, head) => {
      await startRun(ledger, otherRun)
      requireEqual(await ledger.put(run, steering('k1', 'here')), true, 'the answer of the one run')
      requireEqual(await ledger.put(otherRun, steering('k1', 'there')), true, 'the answer of the other run')
      await appendAt(ledger, head, [saying('a')], { consumedInboxKeys: ['k1'] })
      requireEqual(await ledger.inbox(run), [], 'the inbox of the run that took')
      requireEqual(await ledger.inbox(otherRun), [steering('k1', 'there')], 'the inbox of the other run')
    },
  ),
  checkRun(
    'an append takes the entries that it answers, and leaves the others in their order',
    async (ledger, head) => {
      for (const key of ['k1', 'k2', 'k3', 'k4']) await ledger.put(run, steering(key))
      await appendAt(ledger, head, [saying('a')], { consumedInboxKeys: ['k3', 'k1'] })
      requireEqual(await ledger.inbox(run), [steering('k2'), steering('k4')], 'the inbox')
    },
  ),
  checkRun(
    'an append of no events takes entries too, for commands that were refused',
    async (ledger, head) => {
      await ledger.put(run, steering('k1'))
      requireEqual(await appendAt(ledger, head, [], { consumedInboxKeys: ['k1'] }), head, 'the head')
      requireEqual(await ledger.inbox(run), [], 'the inbox')
    },
  ),
  checkRun('an append refused for its head takes nothing', async (ledger, head) => {
    await ledger.put(run, steering('k1'))
    await requireConflict(
      appendAt(ledger, { ...head, seq: 5 }, [saying('a')], { consumedInboxKeys: ['k1'] }),
      'seq',
    )
    await requireConflict(appendAt(ledger, { ...head, seq: 0 }, [], { consumedInboxKeys: ['k1'] }), 'seq')
    requireEqual(await ledger.inbox(run), [steering('k1')], 'the inbox')
  }),
  checkRun('a key that was taken stays known: putting it again changes nothing', async (ledger, head) => {
    await ledger.put(run, steering('k1'))
    await appendAt(ledger, head, [saying('a')], { consumedInboxKeys: ['k1'] })
    requireEqual(await ledger.put(run, steering('k1', 'again')), false, 'the answer')
    requireEqual(await ledger.inbox(run), [], 'the inbox')
  }),
  checkRun('a put writes no event, moves no head and works under any epoch', async (ledger) => {
    await ledger.put(run, steering('k1'))
    await ledger.acquire(run)
    await ledger.put(run, steering('k2'))
    await requireRecord(ledger, stampFacts(run, [sampleFacts(run).run_started]), { epoch: 2 })
    requireEqual(await ledger.inbox(run), [steering('k1'), steering('k2')], 'the inbox')
  }),
  checkRun('a put to a run that is not there is refused, and leaves no entry', async (ledger) => {
    const missing = sampleRunId(9)
    await requireRefusal(ledger.put(missing, steering('k1')), 'run_not_found')
    await startRun(ledger, missing)
    requireEqual(await ledger.inbox(missing), [], 'the inbox of the run made after it')
  }),
  checkRun('a key that stores would confuse is refused', async (ledger) => {
    for (const key of ['', 'a\0b', '\ud800'])
      await requireRefusal(ledger.put(run, steering(key)), 'configuration')
    requireEqual(await ledger.inbox(run), [], 'the inbox')
  }),
  checkRun(
    'a run does not end while its inbox holds an entry that the same append does not take',
    async (ledger, head) => {
      await ledger.put(run, steering('k1'))
      await ledger.put(run, steering('k2'))
      await requireConflict(appendAt(ledger, head, [saying('a'), finish]), 'inbox')
      await requireConflict(appendAt(ledger, head, [finish], { consumedInboxKeys: ['k1'] }), 'inbox')
      await requireRecord(ledger, stampFacts(run, [sampleFacts(run).run_started]))
      requireEqual(await ledger.inbox(run), [steering('k1'), steering('k2')], 'the inbox')
      const end = await appendAt(ledger, head, [finish], { consumedInboxKeys: ['k1', 'k2'] })
      requireEqual(end, { seq: 2, epoch: 1 }, 'the head of the run that ended')
    },
  ),
  checkRun('a run whose inbox was taken before ends', async (ledger, head) => {
    await ledger.put(run, steering('k1'))
    await startRun(ledger, otherRun)
    await ledger.put(otherRun, steering('k2'))
    await appendAt(ledger, head, [], { consumedInboxKeys: ['k1'] })
    requireEqual(await appendAt(ledger, head, [finish]), { seq: 2, epoch: 1 }, 'the head')
  }),
  checkRun('a run that has ended takes no entry, and the keys it knew stay known', async (ledger, head) => {
    await ledger.put(run, steering('k1'))
    await appendAt(ledger, head, [finish], { consumedInboxKeys: ['k1'] })
    await requireConflict(ledger.put(run, steering('k2')), 'ended')
    requireEqual(await ledger.put(run, steering('k1', 'again')), false, 'the answer to a known key')
    requireEqual(await ledger.inbox(run), [], 'the inbox')
  }),
  checkLedger(
    'of a put and the end of the run, at once, one comes first and the other is refused',
    async (ledger) => {
      for (let nth = 1; nth <= 12; nth++) {
        const runId = sampleRunId(nth)
        const head = await startRun(ledger, runId)
        const end = (): Promise<unknown> => appendAt(ledger, head, [finish], { runId, durability: 'barrier' })
        const put = (): Promise<unknown> => ledger.put(runId, steering('k1'))
        const both = await Promise.allSettled(nth % 2 === 0 ? [end(), put()] : [put(), end()])
        const refusals = both.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []))
        requireEqual(refusals.length, 1, 'how many were refused')
        const [refusal] = refusals
        require(refusal instanceof LedgerConflictError, 'the refusal is not a LedgerConflictError')
        const waits = (await ledger.inbox(runId)).length
        requireEqual(refusal.kind, waits === 1 ? 'inbox' : 'ended', 'the kind of the refusal')
      }
    },
  ),
]
