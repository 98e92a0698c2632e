import type { JsonObject, Json, Outcome } from '@tallystick/core/vocabulary'
import { InvalidArgumentError } from 'commander'

/** A value that the input of a call is to hold: at a path, or anywhere. */
export interface InputQuery {
  /** Names of fields and numbers of items, from the outside in. */
  readonly path: readonly string[]
  readonly value: string
}

/** What is asked of a call. All of it has to be true. */
export interface CallQuery {
  readonly tool?: string
  readonly outcome?: Outcome
  readonly inputs: readonly InputQuery[]
}

/** Appends a query such as `order.id=17` or `items.0.sku=tea` to the earlier ones. */
export function inputQuery(text: string, before: readonly InputQuery[] = []): readonly InputQuery[] {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('It has to be a path and a value, such as order.id=17.')
  return [...before, { path: text.slice(0, at).split('.'), value: text.slice(at + 1) }]
}

/** Whether an input holds a value at a path: a text as it is, anything else as JSON writes it. */
export function holds(input: JsonObject, { path, value }: InputQuery): boolean {
  let at: Json | undefined = input
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return false
    at = (at as { readonly [field: string]: Json })[name]
  }
  return at === value || (at !== undefined && typeof at !== 'string' && JSON.stringify(at) === value)
}
