/** Copies that were made to be handed on as they are. */
const lasting = new WeakSet<object>()

/**
 * A copy that nobody can change, all the way down: what is on record stays as it was recorded, whoever holds it. Zero
 * loses its sign, as in JSON, so that what is live and what is read back are the same.
 */
export function sealed<Value>(value: Value): Value {
  if (typeof value === 'number') return (value === 0 ? 0 : value) as Value
  if (typeof value !== 'object' || value === null || lasting.has(value)) return value
  if (Array.isArray(value)) return Object.freeze(value.map((item: unknown) => sealed(item))) as Value
  const copy: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(value)) {
    // A key of that name would set the prototype instead of a field.
    if (key === '__proto__') Object.defineProperty(copy, key, { value: sealed(field), enumerable: true })
    else copy[key] = sealed(field)
  }
  return Object.freeze(copy) as Value
}

/** Whether a value came out of `sealedOnce`, so that nobody can change it. */
export function isLasting(value: object): boolean {
  return lasting.has(value)
}

/** A sealed copy that `sealed` does not copy again: for what many events hold. */
export function sealedOnce<Value extends object>(value: Value): Value {
  const copy = sealed(value)
  lasting.add(copy)
  return copy
}
