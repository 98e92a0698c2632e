import {
  ConfigurationError,
  LedgerDamagedError,
  LedgerUnavailableError,
  RunNotFoundError,
} from '@tallystick/core'
import { InvalidArgumentError } from 'commander'
import { describe, expect, it } from 'vitest'
import { CommandError, chooseExitCode } from '../src/command/exit-code.ts'
import { addLimit } from '../src/command/arguments.ts'

describe('a limit on the command line', () => {
  it('is put beside those before it', () => {
    expect(addLimit('maxTurns=5')).toEqual({ maxTurns: 5 })
    expect(addLimit('maxCostUsd=0.5', { maxTurns: 5 })).toEqual({ maxTurns: 5, maxCostUsd: 0.5 })
    expect(addLimit('maxTurns=0', { maxTurns: 5 })).toEqual({ maxTurns: 0 })
    for (const name of ['maxConcurrency', 'maxApprovalMs', 'graceMs', 'maxRepeats']) {
      expect(addLimit(`${name}=1e3`)).toEqual({ [name]: 1_000 })
    }
    for (const policy of ['finalize', 'stop', 'ask']) {
      expect(addLimit(`onLimit=${policy}`, { maxTurns: 1 })).toEqual({ maxTurns: 1, onLimit: policy })
    }
  })

  it.each([
    ['maxTurns', /^maxTurns has to be a number from 0|^Write name=value/],
    ['maxTurns=', /^maxTurns has to be a number from 0\.$/],
    ['maxTurns= ', /^maxTurns has to be a number from 0\.$/],
    ['maxTurns=-1', /^maxTurns has to be a number from 0\.$/],
    ['maxTurns=many', /^maxTurns has to be a number from 0\.$/],
    ['maxTurns=0x10', /^maxTurns has to be a number from 0\.$/],
    ['maxTurns=Infinity', /^maxTurns has to be a number from 0\.$/],
    ['turns=5', /^Write name=value, such as maxTurns=5, with one of maxTurns, .*, graceMs, onLimit\.$/],
    ['=5', /^Write name=value/],
    ['onLimit=go', /^onLimit is one of finalize, stop, ask\.$/],
    ['toString=1', /^Write name=value/],
  ])('is refused with what it may be: %s', (text, message) => {
    expect(() => addLimit(text)).toThrow(InvalidArgumentError)
    expect(() => addLimit(text)).toThrow(message)
  })
})

describe('an exit code', () => {
  it('says which kind of error ended a command', () => {
    const codes: readonly (readonly [unknown, number])[] = [
      [new CommandError('usage', 'x'), 2],
      [new CommandError('not_found', 'x'), 5],
      [new CommandError('refused', 'x'), 1],
      [new ConfigurationError('x'), 2],
      [new RunNotFoundError('r'), 5],
      [new LedgerDamagedError('x'), 4],
      [new LedgerUnavailableError('x'), 1],
      [new Error('x'), 1],
      [Object.assign(new Error('x'), { code: 'configuration' }), 1],
      [undefined, 1],
    ]
    expect(codes.map(([error]) => chooseExitCode(error))).toEqual(codes.map(([, code]) => code))
  })
})
