/** Returns true only for values that the schema accepts. False says nothing: zod has to decide. */
export type QuickCheck = (value: unknown) => boolean

/** What a schema says of itself, so that those built on it can be checked without zod. */
export interface QuickSchema {
  /** Builds the check when it is first asked for; absent where only zod can tell. */
  readonly quick?: () => QuickCheck
  /** Present on the schema of a field that may be missing. */
  readonly isOptional?: true
  /** Present on the schema of an object: those of its fields. */
  readonly fields?: Shape
}

/** The schemas of fields, by their names. */
export type Shape = Readonly<Record<string, QuickSchema>>

/** Leaves every value to zod. */
const cannotTell: QuickCheck = () => false

/** The check of a schema. */
export function quickCheckOf({ quick }: QuickSchema): QuickCheck {
  return quick?.() ?? cannotTell
}

/** Plain values. */
export const isText: QuickCheck = (value) => typeof value === 'string'
export const isFlag: QuickCheck = (value) => typeof value === 'boolean'

/** A finite number within bounds, both included. */
export function isAmountWithin(min: number, max: number): QuickCheck {
  if (min === -Infinity && max === Infinity) return Number.isFinite
  return (value) => typeof value === 'number' && value >= min && value <= max && Number.isFinite(value)
}

/** A whole number that is safe to count with, from a least one on. */
export function isWholeFrom(min: number): QuickCheck {
  return (value) => typeof value === 'number' && value >= min && Number.isSafeInteger(value)
}

/** One of these values. */
export function isOneOf(values: readonly unknown[]): QuickCheck {
  const [only] = values
  if (values.length === 1) return (value) => value === only
  const all = new Set(values)
  return (value) => all.has(value)
}

/** A value that one of these checks takes. */
export function isAnyOf(schemas: readonly QuickSchema[]): QuickCheck {
  const checks = schemas.map(quickCheckOf)
  return (value) => {
    for (const check of checks) if (check(value)) return true
    return false
  }
}

/** A list of these. */
export function isListOf(schema: QuickSchema): QuickCheck {
  const check = quickCheckOf(schema)
  return (value) => {
    if (!Array.isArray(value)) return false
    for (let index = 0; index < value.length; index++) if (!check(value[index])) return false
    return true
  }
}

/** A field of an object, and its check. */
interface CheckedField {
  readonly isHeld: QuickCheck
  /** 1 where the field may not be missing. */
  readonly needed: 0 | 1
}

/** An object with these fields, and whatever else. A field that is `undefined` is not the same as one that is missing. */
export function isObjectOf(shape: Shape): QuickCheck {
  const fields = new Map<string, CheckedField>()
  let needed = 0
  for (const name of Object.keys(shape)) {
    const schema = shape[name] as QuickSchema
    const field: CheckedField = { isHeld: quickCheckOf(schema), needed: schema.isOptional ? 0 : 1 }
    fields.set(name, field)
    needed += field.needed
  }
  // An object has few of the fields that it may have, so it is asked for those that it has: the others need not be looked for.
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
    let found = 0
    for (const name in value) {
      const field = fields.get(name)
      if (field === undefined) continue
      const held: unknown = (value as Record<string, unknown>)[name]
      if (held === undefined || !field.isHeld(held)) return false
      found += field.needed
    }
    return found === needed
  }
}

/** An object without a class: one that was written as a literal, or that has no prototype. */
export const isPlainObject: QuickCheck = (value) => {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** An object with these values under any names. */
export function isRecordOf(schema: QuickSchema): QuickCheck {
  const check = quickCheckOf(schema)
  return (value) => {
    if (!isPlainObject(value)) return false
    for (const name of Reflect.ownKeys(value as object)) {
      if (typeof name !== 'string') return false
      if (!check((value as Record<string, unknown>)[name])) return false
    }
    return true
  }
}
