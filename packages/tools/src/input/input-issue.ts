import type { JsonObject } from '@tallystick/core/vocabulary'

/** One thing that is wrong with an input, as any validator reports it. */
export interface InputIssue {
  /** Keys and places from the input's root down to what is wrong. */
  readonly path: readonly PropertyKey[]
  /** The validator's own words. */
  readonly message: string
  /** Keys of the object at `path` that the schema does not allow. */
  readonly unknownKeys?: readonly string[]
}

/** An input that was checked: the value as the schema gives it out (defaults, conversions), or what is wrong. */
export type Parsed<Input> =
  | { readonly ok: true; readonly value: Input }
  | { readonly ok: false; readonly issues: readonly InputIssue[] }

/** Checks an input: at once where the schema does. Throws or rejects only where the schema itself is at fault. */
export type Parse<Input> = (input: JsonObject) => Parsed<Input> | Promise<Parsed<Input>>
