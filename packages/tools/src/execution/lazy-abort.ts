/** Aborts a call once. Its signal is made when the tool asks for it: most tools do not, and it costs as much as a short call. */
export class LazyAbort {
  #controller: AbortController | undefined
  #reason: string | undefined

  /** Why the call was aborted; `undefined` while it was not. */
  get reason(): string | undefined {
    return this.#reason
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#reason !== undefined) this.#controller.abort(errorOf(this.#reason))
    }
    return this.#controller.signal
  }

  /** The first reason counts. */
  abort(reason: string): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    this.#controller?.abort(errorOf(reason))
  }
}

function errorOf(reason: string): DOMException {
  return new DOMException(reason || 'The call was cancelled', 'AbortError')
}
