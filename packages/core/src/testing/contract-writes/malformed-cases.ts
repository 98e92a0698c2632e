import { everyFact } from '../samples/sample-facts.ts'
import { stamped } from '../samples/sample-ids.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { require, requireEqual, requireRefusal } from '../contract/requirement.ts'
import {
  appendAt,
  barrier,
  otherRun,
  requireRecord,
  run,
  saying,
  startRun,
  steering,
} from '../contract/scenario.ts'

const start = stamped(run, [everyFact(run).run_started])
const sound = stamped(run, [saying('a'), saying('b'), saying('c')], { afterSeq: 1 })

/** A batch of three whose second event is changed; its message has to say what is wrong. */
function refuses(promise: string, change: object, words: string): LedgerContractCase {
  return {
    promise,
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      await ledger.put(run, steering('k1'))
      const batch = sound.map((event, index) => (index === 1 ? { ...event, ...change } : event))
      const append = ledger.append(run, { expectedSeq: 1, epoch: 1 }, batch, {
        ...barrier,
        consumedInboxKeys: ['k1'],
      })
      const { message } = await requireRefusal(append, 'configuration')
      require(message.includes(words), `the refusal should say "${words}", but says: ${message}`)
      require(message.includes(run), 'the refusal does not name the run')
      await requireRecord(ledger, start)
      requireEqual(await ledger.inbox(run), [steering('k1')], 'the inbox')
      requireEqual(
        await appendAt(ledger, { seq: 1, epoch: 1 }, [saying('d')]),
        { seq: 2, epoch: 1 },
        'the head after it',
      )
    },
  }
}

/** A writer's fault is refused before anything is written, and named. */
export const malformedCases: readonly LedgerContractCase[] = [
  refuses('a gap within a batch is refused', { seq: 4 }, 'seq'),
  refuses('a number given twice within a batch is refused', { seq: 2 }, 'seq'),
  refuses('an event of another run is refused', { runId: otherRun }, otherRun),
  refuses('an event of another epoch than its writer is refused', { epoch: 2 }, 'epoch'),
  refuses('a time that is no whole number is refused', { at: 1.5 }, 'at'),
  refuses('a time that is no date is refused', { at: 8_640_000_000_000_001 }, 'at'),
  refuses('what is no tool call id is refused in its place', { toolCallId: 'call_$(id)' }, 'toolCallId'),
  refuses('a turn that is not there is refused', { turn: undefined }, 'turn'),
  refuses('a number that JSON cannot carry is refused', { part: Number.NaN }, 'NaN'),
  refuses('a value that JSON cannot carry is refused', { text: () => 'late' }, 'function'),
  {
    promise: 'a batch that begins elsewhere than after the expected head is refused',
    async run(open) {
      const ledger = await open()
      await startRun(ledger)
      const late = stamped(run, [saying('a')], { afterSeq: 2 })
      await requireRefusal(ledger.append(run, { expectedSeq: 1, epoch: 1 }, late, barrier), 'configuration')
      await requireRecord(ledger, start)
    },
  },
]
