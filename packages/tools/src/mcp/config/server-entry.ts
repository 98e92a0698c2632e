import { getOwn } from '@tallystick/core/kit'
import { configError, type ConfigPlace } from './config-error.ts'
import type { Expansion } from './expansion.ts'

/** The fields of one server in a file, each read in one way, with its variables replaced. */
export interface ServerEntry {
  readonly place: ConfigPlace
  readonly expansion: Expansion
  has(field: string): boolean
  /** A text that is not empty. */
  text(field: string): string | undefined
  flag(field: string): boolean | undefined
  /** A number above 0, times `factor`. */
  milliseconds(field: string, factor?: number): number | undefined
  texts(field: string): readonly string[] | undefined
  /** Texts by name; numbers and booleans are taken as texts. */
  textsByName(field: string): Readonly<Record<string, string>> | undefined
}

/** Reads the fields of an entry. Throws `ConfigurationError` for one of another kind. */
export function serverEntry(
  raw: Readonly<Record<string, unknown>>,
  place: ConfigPlace,
  expansion: Expansion,
): ServerEntry {
  const valueOf = (field: string): unknown => getOwn(raw, field)
  const read = <Value>(
    field: string,
    expected: string,
    take: (value: unknown) => Value | undefined,
  ): Value | undefined => {
    const value = valueOf(field)
    if (value === undefined || value === null) return undefined
    const taken = take(value)
    if (taken === undefined) throw configError(place, `${field} has to be ${expected}.`)
    return taken
  }
  const takeText = (value: unknown): string | undefined =>
    typeof value === 'string' ? expansion.text(value) : undefined
  const takeScalar = (value: unknown): string | undefined =>
    typeof value === 'number' || typeof value === 'boolean' ? String(value) : takeText(value)
  return {
    place,
    expansion,
    has: (field) => valueOf(field) !== undefined && valueOf(field) !== null,
    text: (field) => read(field, 'a text that is not empty', (value) => takeText(value) || undefined),
    flag: (field) =>
      read(field, 'true or false', (value) => (typeof value === 'boolean' ? value : undefined)),
    milliseconds: (field, factor = 1) =>
      read(field, 'a number above 0', (value) => {
        const number = typeof value === 'bigint' ? Number(value) : value
        const ms = typeof number === 'number' ? Math.round(number * factor) : Number.NaN
        return ms >= 1 && ms <= 2 ** 31 - 1 ? ms : undefined
      }),
    texts: (field) =>
      read(field, 'a list of texts', (value) => {
        const texts = Array.isArray(value) ? value.map(takeScalar) : [undefined]
        return texts.every((text) => text !== undefined) ? texts : undefined
      }),
    textsByName: (field) =>
      read(field, 'an object of texts', (value) => {
        if (typeof value !== 'object' || Array.isArray(value)) return undefined
        const entries = Object.entries(value as object).map(
          ([name, each]) => [name, takeScalar(each)] as const,
        )
        const isWhole = entries.every((entry): entry is readonly [string, string] => entry[1] !== undefined)
        return isWhole ? Object.fromEntries(entries) : undefined
      }),
  }
}
