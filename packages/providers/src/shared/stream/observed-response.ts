/** What is known of an HTTP answer besides its body. */
export interface ResponseFacts {
  requestId?: string | undefined
  contentType?: string | undefined
}

/**
 * The same response with every piece of its body reported as it passes. SDKs swallow a wire's keep-alive records; the
 * bytes are the only sign of life that all of them leave.
 */
export function observedResponse(
  response: Response,
  onBytes: (bytes: Uint8Array) => void,
  onEnd: () => void = () => {},
): Response {
  if (!response.ok || typeof response.body?.pipeThrough !== 'function') return response
  const observer = new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, controller) {
      onBytes(bytes)
      controller.enqueue(bytes)
    },
    flush: onEnd,
  })
  return new Response(response.body.pipeThrough(observer), response)
}
