/** Where a run's chain ended when this process last saw it. */
export interface KnownHead {
  readonly seq: number
  readonly epoch: number
  readonly hash: Uint8Array
}

/** More runs than a process drives at a time. */
const maxRuns = 4_096

/** The last links of the runs that this process appends to, so that an append need not ask for them. */
export class KnownHeads {
  readonly #heads = new Map<string, KnownHead>()

  get(runId: string): KnownHead | undefined {
    return this.#heads.get(runId)
  }

  set(runId: string, head: KnownHead): void {
    this.#heads.delete(runId)
    this.#heads.set(runId, head)
    if (this.#heads.size <= maxRuns) return
    const [oldest] = this.#heads.keys()
    if (oldest !== undefined) this.#heads.delete(oldest)
  }

  forget(runId: string): void {
    this.#heads.delete(runId)
  }
}
