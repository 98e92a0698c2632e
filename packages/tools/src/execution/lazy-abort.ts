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

/** Where a context keeps what aborts its call. */
const abortOf = Symbol('abort')

/**
 * Gives a context the signal of its call. All contexts share the function that reads it: for one of its own, V8 would keep a
 * hidden class, and with it all that the call held, until the next full collection.
 */
export function withSignal<Given extends object>(
  given: Given,
  abort: LazyAbort,
): Given & { readonly signal: AbortSignal } {
  Object.defineProperty(given, abortOf, { value: abort })
  return Object.defineProperty(given, 'signal', signalField) as Given & { readonly signal: AbortSignal }
}

const signalField = {
  enumerable: true,
  get(this: { readonly [abortOf]: LazyAbort }): AbortSignal {
    return this[abortOf].signal
  },
}

function errorOf(reason: string): DOMException {
  return new DOMException(reason || 'The call was cancelled', 'AbortError')
}
