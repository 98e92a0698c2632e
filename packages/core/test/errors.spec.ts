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
