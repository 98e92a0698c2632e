import type { Measurement } from '../cases/case.ts'

/** What a child process reports of one trial. */
export type ChildReport =
  | { readonly measurement: Measurement; readonly peakMiB: number }
  | { readonly error: string }
