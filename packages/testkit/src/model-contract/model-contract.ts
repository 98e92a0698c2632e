import type { ModelContractCase } from './case.ts'
import { endingCases, failureCases } from './failure-cases.ts'
import { replyCases } from './reply-cases.ts'
import { requestCases } from './request-cases.ts'

/**
 * Every promise of the `Model` port as a case that an adapter keeps or breaks. It needs no test framework:
 *
 * ```ts
 * const harness = httpHarness({ model: (baseURL) => myModel({ baseURL }), reply: …, … })
 * for (const { promise, needs, run } of modelContract) {
 *   test.skipIf(needs && harness.lacks?.includes(needs))(promise, () => run(harness))
 * }
 * ```
 */
export const modelContract: readonly ModelContractCase[] = [
  ...replyCases,
  ...endingCases,
  ...failureCases,
  ...requestCases,
]
