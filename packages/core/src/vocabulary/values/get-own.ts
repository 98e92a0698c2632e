/**
 * What a record has under a key of its own; `undefined` where it has none. Names come from models, tools and users, and
 * one such as `constructor` is no key of an object that nobody gave one.
 */
export function getOwn<Value>(record: { readonly [key: string]: Value }, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}
