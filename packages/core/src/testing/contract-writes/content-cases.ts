import { eventTypes, type Fact } from '../../events/event.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { RunId } from '../../values/ids.ts'
import type { JsonObject } from '../../values/json.ts'
import { everyFact } from '../samples/sample-facts.ts'
import { sampleCallId, stamped } from '../samples/sample-ids.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { require, requireEqual } from '../contract/requirement.ts'
import {
  appendAt,
  barrier,
  collect,
  otherRun,
  requireRecord,
  run,
  saying,
  startRun,
} from '../contract/scenario.ts'

/** A tool request with this input, as a model may write it. */
function asking(input: JsonObject): Fact {
  return {
    type: 'tool_request_ready',
    turn: 1,
    toolCallId: sampleCallId(run),
    attempt: 1,
    part: 0,
    providerCallId: 'c1',
    name: 'get_weather',
    input,
  }
}

/** A store may not know. */
async function requireWhole(ledger: Ledger, runId: RunId, isWhole: boolean): Promise<void> {
  const found = await ledger.isWhole?.(runId)
  if (found !== undefined) requireEqual(found, isWhole, `whether run ${runId} is whole`)
}

/** What was said comes back as it was said. */
function keeps(promise: string, facts: readonly Fact[]): LedgerContractCase {
  return {
    promise,
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      await appendAt(ledger, head, facts)
      await requireRecord(ledger, stamped(run, [everyFact(run).run_started, ...facts]))
    },
  }
}

/** Text that stores have tripped over: half surrogate pairs, NUL, controls, combining marks, right-to-left. */
const oddTexts = [
  '',
  '\0',
  'before\0after',
  '\ud800',
  'half \udc00 pair',
  '\ud83d\ude00 whole, halves swapped \ude00\ud83d',
  'é e\u0301 ﷽ \u202eright to left\u202c',
  '\u0000\u0001\u001f\u007f\u0085\u2028\u2029\ufeff\uffff',
  '\\u0000 "quoted" \\ \n\r\t',
  "'; DROP TABLE event; --",
  '漢字 कि 한국어 🏳️‍🌈',
]

const oddObject: JsonObject = {
  '': 'an empty key',
  'a\0b': 'a NUL in a key',
  '\ud800': 'half a pair in a key',
  constructor: { prototype: {} },
  seq: 99,
  runId: 'not the run',
  nested: [[[[{ deep: [null, true, false, [], {}] }]]]],
  numbers: [0, -1, 1.5, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, Number.MAX_SAFE_INTEGER, 0.1 + 0.2],
  // An own key, as JSON.parse makes it; an object literal would set the prototype.
  holder: JSON.parse('{"__proto__":{"polluted":true}}') as JsonObject,
}

/** Events come back deep-equal, whatever a model or a tool said. */
export const contentCases: readonly LedgerContractCase[] = [
  {
    promise: 'a store that knows whether content of a run was removed says so',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      await appendAt(ledger, head, [everyFact(run).run_finished], barrier)
      await startRun(ledger, otherRun)
      await requireWhole(ledger, run, true)
      if (ledger.removeContent === undefined) return
      await ledger.removeContent(run, { by: 'ada', reason: 'asked for', at: 5 })
      await requireWhole(ledger, run, false)
      await requireWhole(ledger, otherRun, true)
    },
  },
  {
    promise: 'an event of every type comes back with every field',
    async run(open) {
      const ledger = await open()
      const facts = Object.values(everyFact(run))
      requireEqual(facts.map(({ type }) => type).toSorted(), eventTypes.toSorted(), 'the sample types')
      const events = stamped(run, facts)
      await ledger.append(run, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
      await requireRecord(ledger, events)
    },
  },
  keeps(
    'odd text comes back as it was: NUL, half surrogate pairs, controls, quotes',
    oddTexts.map((text) => saying(text)),
  ),
  keeps('odd objects come back as they were: nested, with odd keys and extreme numbers', [asking(oddObject)]),
  keeps('a text of two million characters comes back whole', [
    saying('ab\u00e9\ud83d\ude00'.repeat(400_000)),
  ]),
  keeps('a value nested five hundred deep comes back', [
    asking({ deep: JSON.parse('['.repeat(500) + ']'.repeat(500)) as JsonObject }),
  ]),
  keeps('an event without optional fields comes back without them', [
    { type: 'cancel_requested', turn: 0 },
    { type: 'assistant_started', turn: 1, attempt: 1 },
  ]),
  {
    promise: 'a field that is undefined counts as not there',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      const plain = stamped(run, [{ type: 'cancel_requested', turn: 0 }], { afterSeq: 1 })
      const spelled = plain.map((event) => ({ ...event, by: undefined, reason: undefined })) as never
      await ledger.append(run, { expectedSeq: head.seq, epoch: 1 }, spelled, { durability: 'lazy' })
      const [event] = await collect(ledger.read(run, { fromSeq: 2 }))
      require(event !== undefined && !('by' in event), 'a field that was undefined came back')
    },
  },
  {
    promise: 'changing an object after it was appended, or after it was read, does not change the record',
    async run(open) {
      const ledger = await open()
      const head = await startRun(ledger)
      const input = { city: 'Seoul' }
      await appendAt(ledger, head, [asking(input)])
      input.city = 'Busan'
      const [read] = await collect(ledger.read(run, { fromSeq: 2 }))
      requireEqual(
        read?.type === 'tool_request_ready' && read.input,
        { city: 'Seoul' },
        'the input after the change',
      )
      // A ledger may return events that cannot be changed.
      Reflect.set(read ?? {}, 'input', { city: 'Jeju' })
      const [again] = await collect(ledger.read(run, { fromSeq: 2 }))
      requireEqual(
        again?.type === 'tool_request_ready' && again.input,
        { city: 'Seoul' },
        'the input read again',
      )
    },
  },
]
