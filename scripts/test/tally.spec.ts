import { describe, expect, it } from 'vitest'
import { addTallies, countTests } from '../verify/tally.ts'

/** A vitest report of files, each with its own verdict and those of its tests. */
function report(success: boolean, ...files: readonly (readonly [string, ...string[]])[]): string {
  return JSON.stringify({
    success,
    testResults: files.map(([status, ...tests]) => ({
      status,
      assertionResults: tests.map((test) => ({ status: test })),
    })),
  })
}

describe('countTests', () => {
  it('counts what passed and failed, and neither what was left out', () => {
    const text = report(
      false,
      ['passed', 'passed', 'passed', 'skipped', 'todo'],
      ['failed', 'passed', 'failed', 'failed'],
    )
    expect(countTests(text)).toEqual({ passed: 3, failed: 2 })
  })

  it('counts a file that did not load as one failure', () => {
    expect(countTests(report(false, ['failed'], ['passed', 'passed']))).toEqual({ passed: 1, failed: 1 })
  })

  it('counts a file whose set-up threw after its tests passed as one failure', () => {
    expect(countTests(report(false, ['failed', 'passed', 'passed']))).toEqual({ passed: 2, failed: 1 })
  })

  it('counts a failed run without a failed test as one failure', () => {
    expect(countTests(report(false, ['passed', 'passed']))).toEqual({ passed: 1, failed: 1 })
    expect(countTests(report(false))).toEqual({ passed: 0, failed: 1 })
  })
})

describe('addTallies', () => {
  it('adds both sides', () => {
    expect(addTallies({ passed: 1, failed: 2 }, { passed: 10, failed: 20 })).toEqual({
      passed: 11,
      failed: 22,
    })
  })
})
