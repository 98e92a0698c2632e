import { fitsAny } from './pattern.ts'
import type { InputCondition, Scalar } from './rules.ts'

/** Whether a condition holds; `undecided` where the value cannot be compared so. */
export type Finding = boolean | 'undecided'

/** Whether all findings hold: one that does not decides, then one that is undecided. */
export function all(findings: readonly Finding[]): Finding {
  if (findings.includes(false)) return false
  return findings.includes('undecided') ? 'undecided' : true
}

/** Whether the field of an input at a path fits a condition. */
export function fieldFits(input: unknown, path: string, condition: InputCondition): Finding {
  return fits(fieldAt(input, path), condition)
}

/** The value at a path, or `undefined`. Only own fields of objects and items of lists are looked at. */
function fieldAt(input: unknown, path: string): unknown {
  let value = input
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as { readonly [name: string]: unknown })[name]
  }
  return value
}

type Conditions = Exclude<InputCondition, Scalar>

/** What each kind of condition finds in a value that is there. */
const findings: {
  readonly [K in Exclude<keyof Conditions, 'present'>]-?: (
    value: unknown,
    expected: NonNullable<Conditions[K]>,
  ) => Finding
} = {
  is: (value, expected) => value === expected,
  oneOf: (value, expected) => expected.some((each) => value === each),
  like: (value, patterns) => (typeof value === 'string' ? fitsAny(patterns, value) : 'undecided'),
  above: (value, bound) => (typeof value === 'number' ? value > bound : 'undecided'),
  atLeast: (value, bound) => (typeof value === 'number' ? value >= bound : 'undecided'),
  below: (value, bound) => (typeof value === 'number' ? value < bound : 'undecided'),
  atMost: (value, bound) => (typeof value === 'number' ? value <= bound : 'undecided'),
  not: (value, condition) => opposite(fits(value, condition)),
  some: (value, condition) => (Array.isArray(value) ? someFits(value, condition) : 'undecided'),
  every: (value, condition) =>
    Array.isArray(value) ? all(value.map((item) => fits(item, condition))) : 'undecided',
}

function fits(value: unknown, condition: InputCondition): Finding {
  if (typeof condition !== 'object' || condition === null) {
    return value === undefined ? 'undecided' : value === condition
  }
  const found: Finding[] = []
  for (const [kind, expected] of Object.entries(condition)) {
    if (expected === undefined) continue
    if (kind === 'present') found.push((value !== undefined) === expected)
    else if (value === undefined) found.push(absent(kind, expected as InputCondition))
    else
      found.push(
        (findings[kind as keyof typeof findings] as (...given: unknown[]) => Finding)(value, expected),
      )
  }
  return all(found)
}

/** A field that is missing can only be known not to be there, or the opposite. */
function absent(kind: string, expected: InputCondition): Finding {
  return kind === 'not' ? opposite(fits(undefined, expected)) : 'undecided'
}

function someFits(items: readonly unknown[], condition: InputCondition): Finding {
  return opposite(all(items.map((item) => opposite(fits(item, condition)))))
}

function opposite(finding: Finding): Finding {
  return finding === 'undecided' ? finding : !finding
}
