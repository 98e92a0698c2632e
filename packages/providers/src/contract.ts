import type { ModelContractCase } from './contract/contract-case.ts'
import { endingCases, failureCases } from './contract/failure-cases.ts'
import { replyCases } from './contract/reply-cases.ts'
import { requestCases } from './contract/request-cases.ts'

export type {
  ContractReply,
  ModelContractCase,
  ModelHarness,
  Need,
  Scene,
  Stage,
} from './contract/contract-case.ts'
export { httpHarness, type HttpWire } from './contract/http-harness.ts'

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
