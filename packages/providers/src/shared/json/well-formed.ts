import type { Json, JsonObject } from '@tallystick/core/vocabulary'

/**
 * The same value with every lone surrogate replaced by U+FFFD. Vendors refuse a body that holds one, and since it
 * would stay in the history, they would refuse every later request too. A value without any comes back as it is.
 */
export function wellFormed<T extends Json>(value: T): T {
  return mend(value) as T
}

function mend(value: Json): Json {
  if (typeof value === 'string') return value.isWellFormed() ? value : value.toWellFormed()
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items = (value as readonly Json[]).map(mend)
    return items.some((item, place) => item !== value[place]) ? items : value
  }
  const object = value as JsonObject
  let changed = false
  const entries = Object.entries(object).map(([key, field]): [string, Json] => {
    const mended: [string, Json] = [mend(key) as string, mend(field)]
    changed ||= mended[0] !== key || mended[1] !== field
    return mended
  })
  return changed ? Object.fromEntries(entries) : object
}
