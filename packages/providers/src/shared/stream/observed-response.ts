/** What is known of an HTTP answer besides its body. */
export interface ResponseFacts {
  requestId?: string | undefined
  contentType?: string | undefined
}

/** What is done with the body of a response as it passes. */
interface Observation {
  /** Gets each piece. */
  readonly onBytes: (bytes: Uint8Array) => void
  /** Called at the end of the body. */
  readonly onEnd?: () => void
  /** Returns what the reader gets in the place of a piece; it says the same. */
  readonly changed?: (bytes: Uint8Array) => Uint8Array
}

/**
 * The same response with every piece of its body reported as it passes. SDKs swallow a wire's keep-alive records; the
 * bytes are the only sign of life that all of them leave.
 */
export function observedResponse(
  response: Response,
  { onBytes, onEnd = () => {}, changed = (bytes) => bytes }: Observation,
): Response {
  if (!response.ok || typeof response.body?.pipeThrough !== 'function') return response
  const observer = new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, controller) {
      onBytes(bytes)
      controller.enqueue(changed(bytes))
    },
    flush: onEnd,
  })
  return new Response(response.body.pipeThrough(observer), response)
}
