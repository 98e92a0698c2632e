/**
 * A name as the key of a row: most are used unchanged, and one that a database could not hold, or that looks like the
 * other kind, as JSON. No two names have the same key.
 */
export function storableKey(name: string): string {
  const isPlain = name.isWellFormed() && !name.includes('\0') && !name.startsWith('"')
  return isPlain ? name : JSON.stringify(name)
}

/** The name that a key stands for. */
export function nameOfKey(key: string): string {
  return key.startsWith('"') ? (JSON.parse(key) as string) : key
}
