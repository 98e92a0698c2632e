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
  const copy = { ...value } as Record<string | symbol, unknown>
  for (const symbol of Object.getOwnPropertySymbols(copy)) delete copy[symbol]
  return freezeOwn(copy) as Value
}

/** Does the same to an object that only the caller holds, which is frozen itself and not copied. */
export function freezeOwn<Value extends object>(value: Value): Value {
  const fields = value as Record<string, unknown>
  for (const key in fields) {
    const field = fields[key]
    const isKept = typeof field !== 'object' && !Object.is(field, -0)
    if (!isKept && Object.hasOwn(fields, key)) fields[key] = deepFreeze(field)
  }
  return Object.freeze(value)
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

/** Freezes a list that only the caller holds, of values that came out of `deepFreezeOnce`: `deepFreeze` does not copy it. */
export function freezeListOnce<Value extends object>(values: Value[]): readonly Value[] {
  frozenOnce.add(values)
  return Object.freeze(values)
}
