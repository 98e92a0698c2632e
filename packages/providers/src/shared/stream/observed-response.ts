/** What is known of an HTTP answer besides its body. */
export interface ResponseFacts {
  requestId?: string | undefined
  contentType?: string | undefined
}

/** What is done with the body of a response as it passes. */
interface Observation {
  /** Gets each piece. */
  readonly onBytes: (bytes: Uint8Array) => void
  /** Called at the end of the body, and not where the reader cancels it. */
  readonly onEnd?: () => void
}

/**
 * The same response with every piece of its body reported as it passes. SDKs swallow a wire's keep-alive records; the
 * bytes are the only sign of life that all of them leave.
 */
export function observedResponse(response: Response, { onBytes, onEnd = () => {} }: Observation): Response {
  if (!response.ok || typeof response.body?.getReader !== 'function') return response
  const reader = response.body.getReader()
  let cancelled = false
  // A TransformStream does the same, and takes a fifth more of the time of an adapter.
  const observed = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read()
      // A read under way says that the body is done where it is cancelled.
      if (cancelled) return
      if (done) {
        onEnd()
        return controller.close()
      }
      onBytes(value)
      controller.enqueue(value)
    },
    cancel(reason) {
      cancelled = true
      return reader.cancel(reason)
    },
  })
  return new Response(observed, response)
}
