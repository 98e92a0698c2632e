/**
 * A copy that nobody can change, all the way down: what is on record stays as it was recorded, whoever holds it. Zero
 * loses its sign, as in JSON, so that what is live and what is read back are the same.
 */
export function sealed<Value>(value: Value): Value {
  if (typeof value === 'number') return (value === 0 ? 0 : value) as Value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return Object.freeze(value.map((item: unknown) => sealed(item))) as Value
  const copy: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(value)) {
    // A key of that name would set the prototype instead of a field.
    if (key === '__proto__') Object.defineProperty(copy, key, { value: sealed(field), enumerable: true })
    else copy[key] = sealed(field)
  }
  return Object.freeze(copy) as Value
}
