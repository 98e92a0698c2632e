/**
 * Returns what a record has under a key of its own; `undefined` if it has none. Names come from models, tools and
 * users, and a name such as `constructor` is no own key unless the object sets it.
 */
export function getOwn<Value>(record: { readonly [key: string]: Value }, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}
