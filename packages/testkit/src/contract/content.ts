import type { Ledger, Message, RuntimeEvent } from '@tallystick/core'
import { type AssistantPart, eventTypes, type Fact, type JsonObject } from '@tallystick/core/vocabulary'
import { sampleFacts } from '../samples/events.ts'
import { sampleCallId, sampleMessage, sampleRunId, stampFacts } from '../samples/values.ts'
import {
  appendAt,
  appendFirst,
  collect,
  lazy,
  checkLedger,
  checkRun,
  type LedgerContractCase,
  require,
  requireConflict,
  requireEqual,
  requireRecord,
  run,
  saying,
  tailUntil,
} from './scenario.ts'

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

/** Checks that the facts are read as they were appended. */
function keeps(promise: string, facts: readonly Fact[]): LedgerContractCase {
  return checkRun(promise, async (ledger, head) => {
    await appendAt(ledger, head, facts)
    await requireRecord(ledger, stampFacts(run, [sampleFacts(run).run_started, ...facts]))
  })
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
  checkLedger('an event of every type comes back with every field', async (ledger) => {
    const facts = Object.values(sampleFacts(run))
    requireEqual(facts.map(({ type }) => type).toSorted(), eventTypes.toSorted(), 'the sample types')
    const events = stampFacts(run, facts)
    await appendFirst(ledger, events, lazy)
    await requireRecord(ledger, events)
  }),
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
  checkRun('a field that is undefined counts as not there', async (ledger, head) => {
    const plain = stampFacts(run, [{ type: 'cancel_requested', turn: 0 }], { afterSeq: 1 })
    const spelled = plain.map((event) => ({ ...event, by: undefined, reason: undefined })) as never
    await ledger.append(run, { expectedSeq: head.seq, epoch: 1 }, spelled, { durability: 'lazy' })
    const [event] = await collect(ledger.read(run, { fromSeq: 2 }))
    require(event !== undefined && !('by' in event), 'a field that was undefined came back')
  }),
  checkRun(
    'changing an object after it was appended, or after it was read, does not change the record',
    async (ledger, head) => {
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
  ),
]

/** A run of a session that begins with some messages. */
function carrying(place: number, messages: readonly Message[]): readonly RuntimeEvent[] {
  const runId = sampleRunId(place)
  const started = { ...sampleFacts(runId).run_started, sessionId: 's', sessionPlace: place }
  return stampFacts(runId, [started, { type: 'history_carried', turn: 0, messages }, saying('x')])
}

async function requireRuns(ledger: Ledger, runs: readonly (readonly RuntimeEvent[])[]): Promise<void> {
  for (const events of runs) {
    const [{ runId }] = events as readonly [RuntimeEvent]
    await requireRecord(ledger, events, { runId })
  }
}

/** Appends runs that begin with these histories, and requires that each is read with its own. */
async function requireHistories(ledger: Ledger, histories: readonly (readonly Message[])[]): Promise<void> {
  const runs = histories.map((messages, index) => carrying(index + 1, messages))
  for (const [index, events] of runs.entries()) {
    await appendFirst(ledger, events)
    await requireRuns(ledger, runs.slice(0, index + 1))
  }
}

const [a, b, c, d, e] = ['a', 'b', 'c', 'd', 'e'].map(sampleMessage) as [
  ...[Message, Message, Message, Message, Message],
]

/** A call and its result, with an input that stores have tripped over. */
function pair(input: JsonObject): readonly Message[] {
  const call: AssistantPart = {
    type: 'tool_call',
    toolCallId: sampleFacts(sampleRunId(9)).tool_result.toolCallId,
    providerCallId: 'c1',
    name: 'look',
    input,
  }
  const { toolCallId } = call
  return [
    {
      role: 'assistant',
      parts: [{ type: 'text', text: 'half \ud800, a line\nand \u2028 another' }, call],
      model: { provider: 'p', api: 'a', modelId: 'm' },
      stopReason: 'tool_use',
      partial: false,
    },
    {
      role: 'tool',
      results: [{ toolCallId, name: 'look', outcome: 'success', content: [{ type: 'text', text: '' }] }],
    },
  ]
}

/** The histories that the runs of a session begin with. Most of one is in the one before, so a store may keep it once. */
export const historyCases: readonly LedgerContractCase[] = [
  checkLedger(
    'a run of a session is read with all that it began with, however much of it stood there before',
    async (ledger) => {
      await requireHistories(ledger, [[a], [a, b, c], [a, b, c, d], [a, b, c, d, e], [a, b, c, d, e]])
    },
  ),
  checkLedger(
    'runs that share the first messages, and differ after them, are each read with their own',
    async (ledger) => {
      await requireHistories(ledger, [
        [a, b, c, d],
        [a, b, e],
        [a, b, c, e],
        [a, b],
        [e],
        [b, c, d],
        [d, c, b, a],
        [a, a],
        [a, a, a],
        [a, b, e, c, d],
      ])
    },
  ),
  checkLedger('what a run begins with comes back as it was said, whatever it holds', async (ledger) => {
    const odd = pair({
      '': 0,
      '10': 1,
      '9': 2,
      constructor: {},
      text: 'before\0after',
      large: '語'.repeat(20_000),
      holder: JSON.parse('{"__proto__":{"polluted":true}}') as JsonObject,
    })
    await requireHistories(ledger, [odd, [...odd, a], [...odd, a, ...pair({})], [...pair({}), ...odd]])
  }),
  checkLedger('what a run began with is found and told as it is read', async (ledger) => {
    const runs = [carrying(1, [a]), carrying(2, [a, b]), carrying(3, [a, c])]
    for (const events of runs) await appendFirst(ledger, events)
    const found = await collect(ledger.find({ types: ['history_carried'] }))
    requireEqual(
      found,
      runs.map(([, carried]) => carried as RuntimeEvent),
      'what is found',
    )
    const tailed = (await tailUntil(ledger, runs.flat().length)).map(({ event }) => event)
    requireEqual(tailed, runs.flat(), 'what the tail tells')
  }),
  checkLedger(
    'a run that begins with a history is recognised when its acknowledgement was lost, and no other is',
    async (ledger) => {
      const [first, second] = [carrying(1, [a, b]), carrying(2, [a, b, c])]
      await appendFirst(ledger, first)
      requireEqual(await appendFirst(ledger, second), { seq: 3, epoch: 1 }, 'the head at the first try')
      requireEqual(await appendFirst(ledger, second), { seq: 3, epoch: 1 }, 'the head at the second try')
      await requireConflict(appendFirst(ledger, carrying(2, [a, b, d])), 'seq')
      await requireRuns(ledger, [first, second])
    },
  ),
  checkLedger('runs that begin with the same messages at once are all read with them', async (ledger) => {
    const runs = Array.from({ length: 8 }, (_, index) =>
      carrying(index + 1, index % 2 === 0 ? [a, b, c] : [a, b, c, d]),
    )
    await Promise.all(runs.map((events) => appendFirst(ledger, events)))
    await requireRuns(ledger, runs)
  }),
  checkLedger(
    'of a run that was refused, what it would have begun with is in no other run’s way',
    async (ledger) => {
      await appendFirst(ledger, carrying(1, [a]))
      const [refused, other] = [carrying(1, [a, b, c]), carrying(2, [a, b, c, d])]
      await requireConflict(appendFirst(ledger, refused), 'seq')
      await appendFirst(ledger, other)
      await requireRuns(ledger, [carrying(1, [a]), other])
    },
  ),
]
