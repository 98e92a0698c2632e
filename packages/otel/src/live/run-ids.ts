/** The ids of the span that is begun next. */
interface Ids {
  readonly traceId: string
  readonly spanId: string
}

/** Set while a span of a run is begun, and at no other time. */
let next: Ids | undefined

/** Calls a function that begins one span. The span gets these ids if its provider generates ids with `runIds`. */
export function withIds<Result>(ids: Ids, begin: () => Result): Result {
  next = ids
  try {
    return begin()
  } finally {
    next = undefined
  }
}

/** Generates the ids of a tracer provider. */
export interface IdGenerator {
  generateTraceId(): string
  generateSpanId(): string
}

/**
 * The `idGenerator` of a tracer provider. Spans of runs get ids that follow from their runs, so that the spans of a run
 * belong together whichever process exports them. All other spans get random ids.
 */
export function runIds(): IdGenerator {
  return {
    generateTraceId: () => next?.traceId ?? randomHex(16),
    generateSpanId: () => next?.spanId ?? randomHex(8),
  }
}

function randomHex(bytes: number): string {
  const random = crypto.getRandomValues(new Uint8Array(bytes))
  // Ids of nothing but zeros are invalid.
  random[0] ||= 1
  return Array.from(random, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
