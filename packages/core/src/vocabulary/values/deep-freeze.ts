/** Copies that were made to be handed on as they are. */
const frozenOnce = new WeakSet<object>()

/**
 * Returns a deeply frozen copy, so that what is on record stays as it was recorded. Zero
 * loses its sign, as in JSON, so that what is live and what is read back are the same.
 */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'number') return (value === 0 ? 0 : value) as Value
  if (typeof value !== 'object' || value === null || frozenOnce.has(value)) return value
  if (Array.isArray(value)) return Object.freeze(value.map((item: unknown) => deepFreeze(item))) as Value
  const copy: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(value)) {
    // A key of that name would set the prototype instead of a field.
    if (key === '__proto__') Object.defineProperty(copy, key, { value: deepFreeze(field), enumerable: true })
    else copy[key] = deepFreeze(field)
  }
  return Object.freeze(copy) as Value
}

/** Whether a value came out of `deepFreezeOnce`, so that no code can change it. */
export function isFrozenOnce(value: object): boolean {
  return frozenOnce.has(value)
}

/** A deeply frozen copy that `deepFreeze` does not copy again: for what many events hold. */
export function deepFreezeOnce<Value extends object>(value: Value): Value {
  const copy = deepFreeze(value)
  frozenOnce.add(copy)
  return copy
}
