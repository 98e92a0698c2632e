import { LedgerConflictError } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { requireEqual, requireRefusal } from '../src/contract/scenario.ts'

describe('a ledger that breaks its contract', () => {
  it('is shown with what it answers instead of a refusal', async () => {
    await expect(requireRefusal(Promise.resolve({ seq: 2, epoch: 1 }), 'run_not_found')).rejects.toThrow(
      'the ledger should refuse with code run_not_found, but answers {"epoch":1,"seq":2}.',
    )
    await expect(requireRefusal(Promise.reject({ status: 409 }), 'run_not_found')).rejects.toThrow(
      'the refusal should be a TallystickError of code run_not_found, but is {"status":409}.',
    )
    const conflict = new LedgerConflictError('inbox', 'It was taken.')
    await expect(requireRefusal(Promise.reject(conflict), 'run_not_found')).rejects.toThrow(
      'but is LedgerConflictError: It was taken. (code ledger_conflict).',
    )
  })

  it('is shown with a value that JSON cannot carry', () => {
    expect(() => requireEqual({ seq: 1n, epoch: 1 }, { seq: 1, epoch: 1 }, 'the head')).toThrow(
      'The ledger breaks its contract: the head should be {"epoch":1,"seq":1}, but is {"epoch":1,"seq":1n}.',
    )
    expect(() => requireEqual(undefined, { seq: 1 }, 'the head')).toThrow('but is undefined.')
  })
})
