/** How many checks passed and failed. */
export interface Tally {
  readonly passed: number
  readonly failed: number
}

/** What is read of vitest's JSON report. */
interface TestReport {
  readonly success: boolean
  readonly testResults: readonly {
    readonly status: string
    readonly assertionResults: readonly { readonly status: string }[]
  }[]
}

/**
 * Counts the tests of vitest's JSON report. A file that failed without any test of its own failing (it did not
 * load, or its set-up threw) counts as one failure, and so does a run that failed for a reason no test shows.
 * Tests that were left out count as neither.
 */
export function countTests(text: string): Tally {
  const report = JSON.parse(text) as TestReport
  let passed = 0
  let failed = 0
  for (const { status, assertionResults } of report.testResults) {
    const failures = assertionResults.filter((test) => test.status === 'failed').length
    passed += assertionResults.filter((test) => test.status === 'passed').length
    failed += status === 'failed' ? Math.max(failures, 1) : failures
  }
  return { passed, failed: !report.success && failed === 0 ? 1 : failed }
}

/** Both tallies together. */
export function addTallies(a: Tally, b: Tally): Tally {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed }
}
