// Checked by the compiler and never run: each `@ts-expect-error` fails the build once its line compiles.
import { option, type Schema } from '@tallystick/core/internal'

interface StoreOptions {
  readonly path: string
  readonly rows?: number | undefined
}

const { fields, filledText: path, maybe, numberFrom } = option
const rows = maybe(numberFrom(1))

export const whole: Schema = fields<StoreOptions>({ path, rows })
// @ts-expect-error an option without a check does not compile: adding one is one line, and not to be forgotten
export const missing: Schema = fields<StoreOptions>({ path })
// @ts-expect-error an option that may be left out has a check that lets it be left out
export const demanding: Schema = fields<StoreOptions>({ path, rows: numberFrom(1) })
// @ts-expect-error an option that has to be given has a check that demands it
export const lenient: Schema = fields<StoreOptions>({ path: maybe(path), rows })
// @ts-expect-error an optional field is declared with undefined, which its check takes: else a caller could not pass it on
export const exact: Schema = fields<{ rows?: number }>({ rows })
// @ts-expect-error a check of an option that does not exist does not compile
export const more: Schema = fields<StoreOptions>({ path, rows, x: rows })
