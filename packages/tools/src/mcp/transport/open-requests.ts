import type { RequestId } from '@modelcontextprotocol/client'

/** The requests of one client that wait for their answers. */
export class OpenRequests {
  readonly #ids = new Set<RequestId>()
  #idle: PromiseWithResolvers<void> | undefined

  get size(): number {
    return this.#ids.size
  }

  add(id: RequestId): void {
    this.#ids.add(id)
  }

  /** Whether the request waited until now. */
  delete(id: RequestId): boolean {
    const wasOpen = this.#ids.delete(id)
    this.#tell()
    return wasOpen
  }

  clear(): void {
    this.#ids.clear()
    this.#tell()
  }

  /** Resolves when none waits. */
  async idle(): Promise<void> {
    if (this.#ids.size > 0) await (this.#idle ??= Promise.withResolvers<void>()).promise
  }

  #tell(): void {
    if (this.#ids.size > 0) return
    this.#idle?.resolve()
    this.#idle = undefined
  }
}
