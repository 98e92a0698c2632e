/** How far a fork has come on the other run's record. */
export interface ForkProgress {
  /** Calls of the other run whose recorded results were served. */
  readonly reused: readonly string[]
  /** The turn in which a tool ran for real; what is asked for in later turns is answered by no record. */
  readonly divergedIn?: number
  /** Calls that have a result of the fork's own, such as one that was edited: no record answers them. */
  readonly own: readonly { readonly name: string; readonly inputDigest: string }[]
}
