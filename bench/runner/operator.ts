/** The person who started the benchmarks. */
export interface Operator {
  /** Tells what is being done. */
  readonly say: (what: string) => void
  /** Aborted when the person wants no more. */
  readonly stop: AbortSignal
}
