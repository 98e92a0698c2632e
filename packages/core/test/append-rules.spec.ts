import { describe, expect, it } from 'vitest'
import { ConfigurationError, LedgerConflictError, type RunId, type RuntimeEvent } from '@tallystick/core'
import {
  endsRun,
  isStorableName,
  deriveOnceKey,
  requireHead,
  requireInboxKey,
  requireWellFormed,
  readSessionPlace,
  computeStorableDigests,
  toStorableText,
} from '@tallystick/core/store-kit'
import type { ExpectedHead } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleCallId, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { isEndedBefore, isUnreadInbox, ignoreEnded } from '../src/ledger/append-rules.ts'

const run = sampleRunId(1)
const facts = sampleFacts(run)
const [started, cancelled, ended] = stampFacts(run, [
  facts.run_started,
  facts.cancel_requested,
  facts.run_finished,
]) as readonly [RuntimeEvent, RuntimeEvent, RuntimeEvent]

/** Checks a first append whose second event is changed. */
function check(change: object, runId: RunId = run): void {
  const events = [started, { ...cancelled, ...change } as RuntimeEvent]
  requireWellFormed(runId, { expectedSeq: 0, epoch: 1 }, events)
}

describe('an append', () => {
  it.each<readonly [object, string]>([
    [{ runId: sampleRunId(2) }, `belongs to run ${sampleRunId(2)}.`],
    [{ toolCallId: 'no id' }, 'has "no id" as toolCallId, which is not a tool call id.'],
    [{ toolCallId: 'x'.repeat(79) }, `has "${'x'.repeat(79)} as toolCallId,`],
    [{ ...facts.run_started, parent: {} }, 'has nothing as parent.runId, which is not a run id.'],
    [{ seq: 2.5 }, 'has the seq 2.5, which is not a whole number.'],
    [{ epoch: Number.NaN }, 'has the epoch NaN, which is not a whole number.'],
    [{ turn: '1' }, 'has the turn 1, which is not a whole number.'],
    [{ at: undefined }, 'has the at undefined, which is not a whole number.'],
    [{ v: 2 ** 53 }, `has the v ${2 ** 53}, which is not a whole number.`],
    [{ at: 253_402_300_800_000 }, 'has the at 253402300800000, which is not a date of the years 0 to 9999.'],
    [{ seq: 3 }, 'has the seq 3 where 2 follows.'],
    [{ epoch: 2 }, 'has the epoch 2 where its writer has 1.'],
  ])('is refused whole for an event with %j, which the error names', (change, message) => {
    expect(() => check(change)).toThrow(ConfigurationError)
    expect(() => check(change)).toThrow(`Event 2 of an append to run ${run} ${message}`)
    expect(() => check(change)).toThrow('Nothing was written, since')
  })

  it('writes a run id that is not valid as JSON, so that its characters do nothing', () => {
    const other = 'a\n"b"' as RunId
    expect(() => check({}, other)).toThrow(`Event 1 of an append to run "a\\n\\"b\\"" belongs to run ${run}.`)
  })

  it.each<readonly [string, object, RunId]>([
    ['a type', { type: 'a\0b' }, run],
    ['a tool call id', { toolCallId: 'call_\ud800' }, run],
    ['a run id', {}, 'r\0' as RunId],
  ])('is refused for %s with a NUL or half a surrogate pair', (_name, change, runId) => {
    expect(() => check(change, runId)).toThrow(/holds an id or a type with a NUL or half a surrogate pair/)
  })

  it('is refused for such a session id', () => {
    const first = { ...started, sessionId: 's\0' } as RuntimeEvent
    expect(() => requireWellFormed(run, { expectedSeq: 0, epoch: 1 }, [first])).toThrow(/with a NUL/)
  })

  it('of sound events is accepted, and so is one without events', () => {
    expect(() => check({})).not.toThrow()
    expect(() => requireWellFormed(run, { expectedSeq: 7, epoch: 3 }, [])).not.toThrow()
  })

  it.each<readonly [ExpectedHead, 'epoch' | 'seq' | undefined]>([
    [{ expectedSeq: 4, epoch: 2 }, undefined],
    [{ expectedSeq: 4, epoch: 1 }, 'epoch'],
    [{ expectedSeq: 3, epoch: 3 }, 'epoch'],
    [{ expectedSeq: 3, epoch: 2 }, 'seq'],
    [{ expectedSeq: 5, epoch: 2 }, 'seq'],
  ])('that expects %j of a run at seq 4 of epoch 2 meets the conflict %s', (expected, kind) => {
    const conflict = ((): unknown => {
      try {
        requireHead(run, { seq: 4, epoch: 2 }, expected)
        return undefined
      } catch (error) {
        return error instanceof LedgerConflictError ? error.kind : error
      }
    })()
    expect(conflict).toBe(kind)
  })
})

describe('what the events of an append say', () => {
  it('of facts that a run may have once: its end, and the result, the start and the decision of a call', () => {
    const call = sampleCallId(run)
    const keys = stampFacts(run, Object.values(facts)).flatMap((event) => deriveOnceKey(event) ?? [])
    expect(keys.toSorted()).toEqual([
      `approval_decided ${call} 1`,
      `background_ended ${call}`,
      'run_finished',
      `tool_result ${call}`,
      `tool_started ${call} 1`,
    ])
  })

  it('of a place in a session: that of its first event, the first unless it names another', () => {
    const first = { ...facts.run_started, sessionId: 's' }
    const place = (...given: readonly object[]): unknown =>
      readSessionPlace(stampFacts(run, given as readonly (typeof facts.run_started)[]))
    expect(place({ ...first, sessionPlace: 3 })).toEqual({ sessionId: 's', sessionPlace: 3 })
    expect(place({ ...first, sessionPlace: undefined })).toEqual({ sessionId: 's', sessionPlace: 1 })
    expect(place({ ...facts.run_started, sessionId: undefined })).toBeUndefined()
    expect(place(facts.cancel_requested, first)).toBeUndefined()
    expect(place()).toBeUndefined()
  })

  it('of the end of a run', () => {
    expect([[started, ended], [started, cancelled], []].map(endsRun)).toEqual([true, false, false])
  })
})

describe('what JSON cannot carry', () => {
  const count = 1n as unknown as string

  it('is refused by the name of what was to be stored', () => {
    for (const act of [
      (): unknown => toStorableText({ count }, 'The command'),
      (): unknown => computeStorableDigests([sampleMessage(count)], 'The command'),
    ]) {
      expect(act).toThrow(ConfigurationError)
      expect(act).toThrow(/^The command cannot be stored: .*Nothing was written\. Pass values that JSON/)
    }
    expect(toStorableText({ b: 1, a: 'x' }, 'The command')).toBe('{"a":"x","b":1}')
    expect(computeStorableDigests([sampleMessage('a'), sampleMessage('b')], 'The command')).toHaveLength(2)
  })
})

describe('a conflict', () => {
  const conflicts = (['epoch', 'seq', 'unique', 'inbox', 'ended'] as const).map(
    (kind) => new LedgerConflictError(kind, `of kind ${kind}`),
  )
  const errors: readonly Error[] = [...conflicts, Object.assign(new Error('of no ledger'), { kind: 'ended' })]

  it('says by its kind that a command came after the end of its run, or an end before a command', () => {
    expect(errors.map(isEndedBefore)).toEqual([false, false, false, false, true, false])
    expect(errors.map(isUnreadInbox)).toEqual([false, false, false, true, false, false])
    expect([isEndedBefore(undefined), isUnreadInbox('inbox')]).toEqual([false, false])
  })

  it('of a put is not an error where the run has ended, and any other is thrown', async () => {
    const failing = async (error: Error): Promise<never> => {
      throw error
    }
    const puts = await Promise.allSettled(errors.map((error) => ignoreEnded(failing(error))))
    expect(puts.map(({ status }) => status)).toEqual([
      ...(['rejected', 'rejected', 'rejected', 'rejected', 'fulfilled', 'rejected'] as const),
    ])
    expect(puts[4]).toEqual({ status: 'fulfilled', value: undefined })
    expect(await Promise.all([true, false].map((isNew) => ignoreEnded(Promise.resolve(isNew))))).toEqual([
      ...[true, false],
    ])
  })
})

describe('an inbox key', () => {
  it.each(['k', '🪵'])('%j is one that every store can hold', (key) => {
    expect(isStorableName(key)).toBe(true)
    expect(() => requireInboxKey(key)).not.toThrow()
  })

  it.each(['', 'a\0', '\udc00'])('%j is refused', (key) => {
    expect(isStorableName(key)).toBe(key === '')
    expect(() => requireInboxKey(key)).toThrow(ConfigurationError)
  })
})
