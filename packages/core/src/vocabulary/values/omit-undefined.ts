/** Returns the fields that are not `undefined`: a field is either there or not, never `undefined`. */
export function omitUndefined<Fields extends object>(
  fields: Fields,
): { readonly [Key in keyof Fields]?: Exclude<Fields[Key], undefined> } {
  const kept: Record<string, unknown> = {}
  for (const key in fields) {
    const value = fields[key]
    if (value === undefined || !Object.hasOwn(fields, key)) continue
    // A key of that name would set the prototype instead of a field.
    if (key === '__proto__')
      Object.defineProperty(kept, key, { value, enumerable: true, writable: true, configurable: true })
    else kept[key] = value
  }
  return kept as { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> }
}

/** `T` whose optional fields may be given as `undefined`, too, which says the same as leaving them out. */
export type OrUndefined<T> = { [K in keyof T]: T[K] | (object extends Pick<T, K> ? undefined : never) }
