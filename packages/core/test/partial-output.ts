/** True if a value is a beginning of another one: cut texts, and lists and objects without what comes later. */
export function isBeginning(part: unknown, whole: unknown): boolean {
  if (typeof part === 'string') return typeof whole === 'string' && whole.startsWith(part)
  if (typeof part !== 'object' || part === null) return Object.is(part, whole) || (part === 0 && whole === 0)
  if (typeof whole !== 'object' || whole === null || Array.isArray(part) !== Array.isArray(whole))
    return false
  return Object.entries(part).every(
    ([key, value]) =>
      Object.hasOwn(whole, key) && isBeginning(value, (whole as Readonly<Record<string, unknown>>)[key]),
  )
}
