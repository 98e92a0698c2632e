import type { Mutant } from './mutant.ts'

/** What became of a mutant. `refused` means that it does not compile; `hung` that its tests did not end. */
export interface Verdict {
  readonly mutant: Mutant
  readonly kind: 'killed' | 'hung' | 'refused' | 'survived'
  /** The test that noticed, or the tests that did not. */
  readonly how: string
  /** The file of the test that noticed. */
  readonly test?: string
}
