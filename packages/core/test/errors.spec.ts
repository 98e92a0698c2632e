import { runInNewContext } from 'node:vm'
import {
  ConfigurationError,
  LedgerConflictError,
  LedgerDamagedError,
  LedgerUnavailableError,
  ProviderError,
  RunNotFoundError,
  TallystickError,
  UnknownEventError,
} from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { IllegalTransitionError, LawBrokenError } from '../src/values/errors.ts'
import { formatNamedError, formatErrorSentence, formatError } from '../src/values/text.ts'

const cause = new Error('disk')

describe('an error', () => {
  it.each<readonly [TallystickError, string, string, RegExp]>([
    [
      new ConfigurationError('No such agent.', { cause }),
      'ConfigurationError',
      'configuration',
      /^No such agent\.$/,
    ],
    [
      new LawBrokenError(4, 7, 'seq falls'),
      'LawBrokenError',
      'law_broken',
      /^Law 4 is broken at seq 7: seq falls\. The ledger is damaged, .*: run verify on it\.$/,
    ],
    [new LedgerConflictError('seq', 'Late.'), 'LedgerConflictError', 'ledger_conflict', /^Late\.$/],
    [new LedgerDamagedError('Torn.', { cause }), 'LedgerDamagedError', 'ledger_damaged', /^Torn\.$/],
    [
      new LedgerUnavailableError('Gone.', { cause }),
      'LedgerUnavailableError',
      'ledger_unavailable',
      /^Gone\.$/,
    ],
    [
      new UnknownEventError('r', 3, 'a v9'),
      'UnknownEventError',
      'unknown_event',
      /^Event 3 of run r is a v9, .* newer release/,
    ],
    [new RunNotFoundError('r'), 'RunNotFoundError', 'run_not_found', /^Run r is not in this ledger\./],
  ])('has its name, a stable code, and says what happened: %s', (error, name, code, message) => {
    expect(error).toBeInstanceOf(TallystickError)
    expect(error).toMatchObject({ name, code, message: expect.stringMatching(message) })
  })

  it('holds what caused it, where it was given', () => {
    for (const Kind of [ConfigurationError, LedgerDamagedError, LedgerUnavailableError]) {
      expect(new Kind('x', { cause }).cause).toBe(cause)
      expect(new Kind('x')).not.toHaveProperty('cause')
    }
  })

  it('of a ledger that is not available holds the reason, where a program can act on it', () => {
    expect(new LedgerUnavailableError('x', { cause, reason: 'absent' })).toMatchObject({
      cause,
      reason: 'absent',
    })
    expect(new LedgerUnavailableError('x', { cause })).not.toHaveProperty('reason')
  })

  it('of a law and of a transition holds what it is about', () => {
    expect(new LawBrokenError(4, 7, 'x')).toMatchObject({ law: 4, seq: 7 })
    const illegal = new IllegalTransitionError(
      'idle',
      'tool_started',
      ['run_finished', 'run_resumed'],
      'no call',
    )
    expect(illegal).toMatchObject({ code: 'illegal_transition', phase: 'idle', event: 'tool_started' })
    expect(illegal.legal).toEqual(['run_finished', 'run_resumed'])
    expect(illegal.message).toBe(
      'The event tool_started is not legal in the phase idle: no call. Legal would be: run_finished, run_resumed. ' +
        'The ledger is damaged, or its writer is at fault: run verify on it.',
    )
    expect(new IllegalTransitionError('done', 'tool_started', ['feedback_given']).message).toContain(
      'in the phase done. Legal would be: feedback_given. The',
    )
  })

  it('of a conflict names its kind, and the run that is under way where that is known', () => {
    const busy = { runId: 'r', status: 'suspended' } as const
    expect(new LedgerConflictError('session', 'x', { busy })).toMatchObject({ kind: 'session', busy })
    expect(new LedgerConflictError('epoch', 'x')).not.toHaveProperty('busy')
  })

  it('of a provider is the failure that it was made from, and has nothing that was not given', () => {
    const least = { class: 'overloaded', message: 'Busy.', retryable: true } as const
    const whole = { ...least, retryable: false, retryAfterMs: 0, status: 529, requestId: '' }
    for (const failure of [least, whole]) {
      const error = new ProviderError(failure, { cause })
      expect(error).toMatchObject({ ...failure, code: 'provider', name: 'ProviderError', cause })
      expect(error.toFailure()).toStrictEqual(failure)
    }
    const plain = new ProviderError(least)
    for (const field of ['retryAfterMs', 'status', 'requestId']) expect(plain).not.toHaveProperty(field)
  })
})

describe('what was thrown, in words', () => {
  const both = (thrown: unknown): readonly string[] => [formatError(thrown), formatNamedError(thrown)]

  it('is the message of an error, or its name where it has none', () => {
    expect(both(new RangeError('too far'))).toEqual(['too far', 'RangeError: too far'])
    expect(formatError(new RangeError(''))).toBe('RangeError')
  })

  it('is the text of anything else', () => {
    expect(both('no')).toEqual(['no', 'no'])
    expect(both(undefined)).toEqual(['undefined', 'undefined'])
    expect(both(Symbol('s'))).toEqual(['Symbol(s)', 'Symbol(s)'])
    expect(formatError([1, 2])).toBe('1,2')
    expect(formatError(new URL('https://example.com/a'))).toBe('https://example.com/a')
  })

  it('is the message of an object that is not an error but has one', () => {
    expect(both({ code: 402, message: 'The card was declined.' })).toEqual([
      'The card was declined.',
      'The card was declined.',
    ])
    expect(formatError(runInNewContext('new TypeError("no card")'))).toBe('no card')
  })

  it('is a sentence that ends in one mark', () => {
    expect(formatErrorSentence(new Error('The card was declined.'))).toBe('The card was declined.')
    expect(formatErrorSentence('Why?\n')).toBe('Why?')
    expect(formatErrorSentence(new RangeError('too far'))).toBe('too far.')
  })

  it('names the fields of an object without a message, and none of their values', () => {
    const thrown = { status: 403, headers: { authorization: 'secret' }, message: '' }
    expect(formatError(thrown)).toBe('an object without a message, with the fields status, headers, message')
    expect(formatError({})).toBe('an object without a message')
    const bare = Object.assign(Object.create(null) as object, { status: 403 })
    expect(formatError(bare)).toBe('an object without a message, with the fields status')
    const wide = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`f${index}`, index]))
    expect(formatError(wide)).toMatch(/ f9 and 2 more$/)
  })

  it('is cut after 2,000 characters', () => {
    const [whole, longer] = ['x'.repeat(2_000), 'x'.repeat(2_001)]
    expect(both(whole)).toEqual([whole, whole])
    expect(formatError(longer)).toBe(whole)
    expect(formatError(new Error(longer))).toBe(whole)
    expect(formatNamedError(new Error(longer))).toBe(`Error: ${whole}`.slice(0, 2_000))
  })

  it('says so where looking at it throws', () => {
    const hostile = {
      toString(): string {
        throw new Error('no')
      },
    }
    const unspeakable = 'something that cannot be put in words'
    expect(both(hostile)).toEqual([unspeakable, unspeakable])
  })
})
