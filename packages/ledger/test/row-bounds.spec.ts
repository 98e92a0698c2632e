import type { RuntimeEvent, RunId } from '@tallystick/core'
import { everyFact, sampleCallId, sampleRunId, stamped } from '@tallystick/core/testing'
import { toolCallIdOf, type Fact } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { eventsBySegment, unpackedEvents } from '../src/content/event/packed-deltas.ts'
import { storedBody } from '../src/content/event/stored-body.ts'
import { isStored, storableRows } from '../src/content/event/stored-rows.ts'
import { Sealer } from '../src/content/payload/encrypted-bytes.ts'
import { envelopeOf } from '../src/record/envelope.ts'
import { headFrom } from '../src/record/segments/segmented-body.ts'
import type { StoredRow } from '../src/record/stored-row.ts'

const [runId, otherId] = [sampleRunId(1), sampleRunId(2)]
const facts = everyFact(runId)
const delta = facts.assistant_text_delta
const start = 1_700_000_000_000

type Said = { readonly fact: Fact; readonly later?: number; readonly turn?: number }

/** Events of one turn and one time, unless they say otherwise; `later` is how long after the one before. */
function events(...said: readonly (Fact | Said)[]): readonly RuntimeEvent[] {
  const all = said.map((each): Said => ('fact' in each ? each : { fact: each }))
  let at = start
  return stamped(
    runId,
    all.map(({ fact }) => fact),
  ).map((event, index): RuntimeEvent => {
    const { later = 0, turn = 1 } = all[index] as Said
    return { ...event, turn, at: (at += later) }
  })
}

/** For each row how many events each of its segments holds. */
function shapeOf(appended: readonly RuntimeEvent[]): readonly (readonly number[])[] {
  return storableRows(appended).map(({ bytes, isSegmented, events: held }) => {
    if (isSegmented === undefined) return [held.length]
    const { heads } = JSON.parse(Buffer.from(bytes).toString()) as { readonly heads: readonly unknown[] }
    return heads.map((head) => (headFrom(head)?.['events'] as number | undefined) ?? 1)
  })
}

const text = (length: number): Fact => ({ ...delta, text: 'x'.repeat(length) })

describe('neighbouring deltas', () => {
  it('are packed up to 4096 characters of text, and no further', () => {
    expect(shapeOf(events(text(4_000), text(96)))).toEqual([[2]])
    expect(shapeOf(events(text(4_000), text(97)))).toEqual([[1, 1]])
    expect(shapeOf(events(text(4_095), text(1), text(1), text(4_095)))).toEqual([[2, 2]])
    expect(shapeOf(events(text(4_096), text(0)))).toEqual([[2]])
    expect(shapeOf(events(text(4_097), text(0)))).toEqual([[1, 1]])
  })

  it('are packed within a second of the first, and never before the one before', () => {
    const late = (later: number): Said => ({ fact: delta, later })
    expect(eventsBySegment(events(delta, late(400), late(600))).map(({ length }) => length)).toEqual([3])
    expect(eventsBySegment(events(delta, late(400), late(601))).map(({ length }) => length)).toEqual([2, 1])
    expect(eventsBySegment(events(delta, late(5), late(-1))).map(({ length }) => length)).toEqual([2, 1])
  })

  it.each(['assistant_text_delta', 'assistant_reasoning_delta', 'tool_input_delta'] as const)(
    'are packed where they are of type %s',
    (type) => {
      const said = events(facts[type], facts[type])
      expect(eventsBySegment(said)).toEqual([said])
    },
  )

  it('of other types are not packed, though they have a text', () => {
    const said = events(...[1, 2].map((): Fact => ({ ...facts.usage_updated, ...({ text: 'a' } as object) })))
    expect(eventsBySegment(said)).toEqual(said.map((event) => [event]))
  })

  it('are packed 256 at most', () => {
    expect(eventsBySegment(events(...Array<Fact>(257).fill(delta))).map(({ length }) => length)).toEqual([
      256, 1,
    ])
  })

  it('are packed only where their numbers follow each other', () => {
    const [first, second, third] = events(delta, delta, delta) as [RuntimeEvent, RuntimeEvent, RuntimeEvent]
    expect(eventsBySegment([first, third])).toEqual([[first], [third]])
    expect(eventsBySegment([second, first])).toEqual([[second], [first]])
    expect(eventsBySegment([second, third])).toEqual([[second, third]])
  })

  it.each<readonly [string, object, object]>([
    ['only the first has a field', { replaces: true }, {}],
    ['only the second has a field', {}, { replaces: true }],
    ['a field has another value', { part: 0 }, { part: 1 }],
    ['each has a field that the other has not', { replaces: true }, { written: undefined }],
  ])('are not packed where %s', (_what, one, other) => {
    const said = events({ ...delta, ...one }, { ...delta, ...other })
    expect(eventsBySegment(said)).toEqual([[said[0]], [said[1]]])
  })

  const input = { ...facts.tool_input_delta, toolCallId: sampleCallId(runId) }
  const ofReply = ['runId', 'epoch', 'v', 'turn', 'attempt', 'part'] as const

  it.each<readonly [string, Fact]>([
    ...ofReply.map((name) => [name, delta] as const),
    ...[...ofReply, 'toolCallId', 'name'].map((name) => [name, input] as const),
  ])('are not packed where another field is in the place of %s, or its value is another', (name, fact) => {
    const both = events(fact, fact)
    expect(eventsBySegment(both)).toEqual([both])
    const replaced = both.map((event, index) => {
      const { [name]: _gone, ...left } = event as unknown as Record<string, unknown>
      return { ...left, other: index } as unknown as RuntimeEvent
    })
    expect(eventsBySegment(replaced)).toEqual(replaced.map((event) => [event]))
    const others = both.map((event, index): RuntimeEvent => ({ ...event, [name]: index + 7 }))
    expect(eventsBySegment(others)).toEqual(others.map((event) => [event]))
  })

  it('are packed where a field that both have is undefined in both', () => {
    const said = events(...[1, 2].map((): Fact => ({ ...delta, ...({ written: undefined } as object) })))
    expect(eventsBySegment(said)).toEqual([said])
  })

  it('are not packed where there is no text, nor with what comes after it', () => {
    const said = events(delta, { ...delta, ...({ text: ['a'] } as object) }, delta)
    expect(eventsBySegment(said)).toEqual(said.map((event) => [event]))
  })
})

describe('the value of packed deltas', () => {
  const [event] = events(delta) as readonly [RuntimeEvent]
  const envelope = { ...envelopeOf(event), firstSeq: 3, seq: 5 }
  const same = { attempt: 1, part: 0 }

  it.each<readonly [string, unknown]>([
    ['a text as long as they are in the place of the list of texts', { same, text: 'abc' }],
    ['nothing in the place of what is alike', { same: null, text: ['a', 'b', 'c'] }],
    ['a text as what is alike', { same: 'same', text: ['a', 'b', 'c'] }],
    ['half a millisecond', { same, text: ['a', 'b', 'c'], earlier: [1.5, 1, 0] }],
    ['a text as a time', { same, text: ['a', 'b', 'c'], earlier: ['1', 1, 0] }],
    [
      'a text as long as they are in the place of the list of times',
      { same, text: ['a', 'b', 'c'], earlier: '210' },
    ],
    ['nothing at all', null],
  ])('is refused where it has %s', (_what, body) => {
    expect(() => unpackedEvents(envelope, body as never)).toThrow(
      /^its body does not hold the events of its row$/,
    )
  })

  it('is one event each, numbered from the first, in one time where it says none', () => {
    const read = unpackedEvents(envelope, { same, text: ['a', 'b', 'c'] })
    expect(read.map(({ seq, at }) => [seq, at])).toEqual([3, 4, 5].map((seq) => [seq, event.at]))
    const late = unpackedEvents(envelope, { same, text: ['a', 'b', 'c'], earlier: [2, 2, 0] })
    expect(late.map(({ at }) => event.at - at)).toEqual([2, 2, 0])
  })
})

describe('neighbouring events of a turn', () => {
  const usage = facts.usage_updated
  const started = facts.assistant_started

  it('share a row within a second from the first to the last, and never before the one before', () => {
    const late = (later: number): Said => ({ fact: usage, later })
    expect(shapeOf(events(started, usage))).toEqual([[1, 1]])
    expect(shapeOf(events(started, late(400), late(600)))).toEqual([[1, 1, 1]])
    expect(shapeOf(events(started, late(400), late(601)))).toEqual([[1, 1], [1]])
    expect(shapeOf(events(started, late(5), late(-1)))).toEqual([[1, 1], [1]])
    // Those of a segment that began in time may be too late.
    expect(shapeOf(events(started, { fact: delta, later: 500 }, { fact: delta, later: 501 }))).toEqual([
      [1],
      [2],
    ])
  })

  it('share a row with their own turn only', () => {
    expect(shapeOf(events(started, { fact: usage, turn: 2 }, { fact: started, turn: 2 }))).toEqual([
      [1],
      [1, 1],
    ])
  })

  it('share a row up to 256 events', () => {
    const thought = { ...facts.assistant_reasoning_delta, text: 'x' }
    const pairs = Array.from({ length: 128 }, () => [text(1), thought]).flat()
    expect(shapeOf(events(...pairs))).toEqual([Array(256).fill(1)])
    expect(shapeOf(events(...pairs, text(1)))).toEqual([Array(256).fill(1), [1]])
    // A segment takes as many places as it has events.
    const most = Array<Fact>(255).fill(delta)
    expect(shapeOf(events(started, ...most))).toEqual([[1, 255]])
    expect(shapeOf(events(started, usage, ...most))).toEqual([[1, 1], [255]])
  })

  it('share a row up to 32 KiB of what they say, to the byte', () => {
    const sized = (bytes: number): Fact => {
      const empty = storedBody(events({ ...delta, text: '' })[0] as RuntimeEvent).bytes.length
      return { ...delta, text: 'x'.repeat(bytes - empty) }
    }
    const other = { ...sized(12_000), type: 'assistant_reasoning_delta' } as Fact
    expect(storedBody(events(sized(12_000))[0] as RuntimeEvent).bytes.length).toBe(12_000)
    expect(shapeOf(events(sized(12_000), other, sized(8_768)))).toEqual([[1, 1, 1]])
    expect(shapeOf(events(sized(12_000), other, sized(8_769)))).toEqual([[1, 1], [1]])
    // The bytes of a row count from its own first event.
    expect(shapeOf(events(sized(12_000), other, sized(12_000), other, sized(8_768)))).toEqual([
      [1, 1],
      [1, 1, 1],
    ])
  })

  it('have a row of their own where a text is kept apart, or where their type is rare', () => {
    const large = { ...delta, text: 'x'.repeat(16 * 1024) }
    expect(shapeOf(events(started, large, usage))).toEqual([[1], [1], [1]])
    expect(shapeOf(events(started, facts.cancel_requested, usage))).toEqual([[1], [1], [1]])
  })

  const result = (turn: number, ordinal: number, of: RunId = runId): Fact => ({
    ...facts.tool_result,
    toolCallId: toolCallIdOf(of, turn, 1, ordinal),
  })
  it.each([
    ['of this turn', result(1, 1), true],
    ['of another turn', result(2, 1), false],
    ['of a turn that begins with the same digit', result(11, 1), false],
    ['of a turn that ends its ordinal', result(2, 1_1), false],
    ['of another run', result(1, 1, otherId), false],
    ['whose fact has no number', result(1, 4_096), false],
    ['whose fact has the last number', result(1, 4_095), true],
  ])('share a row with the result of a call %s, or not', (_what, fact, isShared) => {
    expect(shapeOf(events(started, fact))).toEqual(isShared ? [[1, 1]] : [[1], [1]])
  })

  it('are those that come in every turn: each other type has rows of its own', () => {
    const shared = Object.values(facts)
      .filter(
        ({ type }) =>
          shapeOf(events({ ...facts[type], toolCallId: sampleCallId(runId) } as Fact, started)).length === 1,
      )
      .map(({ type }) => type)
    expect(shared.toSorted()).toEqual([
      ...[
        'assistant_message_finished',
        'assistant_reasoning_delta',
        'assistant_started',
        'assistant_text_delta',
      ],
      ...[
        'model_call_started',
        'tool_input_delta',
        'tool_progress',
        'tool_request_ready',
        'tool_requests_collected',
      ],
      ...['tool_result', 'tool_results_injected', 'tool_started', 'usage_updated'],
    ])
  })

  it('that are about a call of another run share no row where they state no fact either', () => {
    const said = { ...facts.tool_request_ready, toolCallId: sampleCallId(otherId) }
    expect(shapeOf(events(started, said, usage))).toEqual([[1], [1], [1]])
  })
})

describe('a head of a segment', () => {
  const headsIn = (appended: readonly RuntimeEvent[], sealer?: Sealer): unknown => {
    const [row] = storableRows(appended, sealer)
    return (JSON.parse(Buffer.from(row?.bytes ?? []).toString()) as { readonly heads: unknown }).heads
  }

  it('says what the row does not: type, call, version, number of events, and how much earlier', () => {
    const request = { ...facts.tool_request_ready, toolCallId: sampleCallId(runId, 7) }
    const said = events(facts.assistant_started, { fact: delta, later: 3 }, delta, request, {
      fact: facts.usage_updated,
      later: 4,
    }).map((event): RuntimeEvent => ({ ...event, v: 1 }))
    expect(headsIn(said)).toEqual([
      { type: 'assistant_started', earlier: 7 },
      { type: 'assistant_text_delta', events: 2, earlier: 4 },
      { type: 'tool_request_ready', call: '1_1_7', earlier: 4 },
      'usage_updated',
    ])
    expect(headsIn(said.map((event) => ({ ...event, at: start, v: 1 })))).toEqual([
      'assistant_started',
      { type: 'assistant_text_delta', events: 2 },
      'tool_request_ready 1_1_7',
      'usage_updated',
    ])
    expect(headsIn(said.slice(3).map((event) => ({ ...event, at: start, v: 2 })))).toEqual([
      { type: 'tool_request_ready', v: 2, call: '1_1_7' },
      { type: 'usage_updated', v: 2 },
    ])
  })

  it('says nothing of the key: the row names it once', () => {
    const sealer = new Sealer({ id: 'k1', bytes: new Uint8Array(32).fill(7) })
    const said = events(facts.assistant_started, facts.usage_updated)
    const [row] = storableRows(said, sealer)
    const { key, segments } = JSON.parse(Buffer.from(row?.bytes ?? []).toString()) as {
      readonly key: unknown
      readonly segments: readonly unknown[]
    }
    expect(key).toBe('k1')
    expect(segments.map((segment) => typeof segment)).toEqual(['string', 'string'])
    expect(headsIn(said, sealer)).toEqual(headsIn(said))
  })
})

describe('a repeated append', () => {
  it('is another one where it has no events, or more than the row', () => {
    const said = events(delta, delta)
    const [row] = storableRows(said)
    const envelope = { ...envelopeOf(said[1] as RuntimeEvent), firstSeq: 1 }
    const empty = new Uint8Array()
    const stored: StoredRow = {
      ...{ ...envelope, pos: 2, bodyCommit: empty, hash: empty },
      payload: { salt: empty, body: row?.bytes ?? empty },
    }
    expect(isStored(stored, said)).toBe(true)
    expect(isStored(stored, [])).toBe(false)
    expect(isStored(stored, [...said, ...events(facts.cancel_requested)])).toBe(false)
    const { payload: _payload, ...withoutPayload } = stored
    expect(isStored(withoutPayload, said)).toBe(false)
    expect(isStored({ ...stored, turn: 2 }, said)).toBe(false)
  })
})
