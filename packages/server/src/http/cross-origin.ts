/** Whether a browser asks if a page of a named origin may send a request. */
export function isPreflight(request: Request, origins: readonly string[]): boolean {
  const origin = request.headers.get('origin')
  return request.method === 'OPTIONS' && origin !== null && origins.includes(origin)
}

/** The headers that let a page of a named origin read the response; none for any other page. */
export function crossOriginHeaders(
  request: Request,
  origins: readonly string[],
): readonly (readonly [name: string, value: string])[] {
  if (origins.length === 0) return []
  const origin = request.headers.get('origin')
  const vary = ['vary', 'origin'] as const
  if (origin === null || !origins.includes(origin)) return [vary]
  return [
    vary,
    ['access-control-allow-origin', origin],
    ['access-control-allow-credentials', 'true'],
    ['access-control-allow-methods', 'GET, POST'],
    [
      'access-control-allow-headers',
      'authorization, content-type, idempotency-key, last-event-id, traceparent',
    ],
    ['access-control-expose-headers', 'location, retry-after, tallystick-run'],
    ['access-control-max-age', '600'],
  ]
}
