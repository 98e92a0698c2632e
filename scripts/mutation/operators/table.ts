import { arithmetic } from './arithmetic.ts'
import { chaining } from './chaining.ts'
import { comparison } from './comparison.ts'
import { condition } from './condition.ts'
import { element } from './element.ts'
import { equality } from './equality.ts'
import { literal } from './literal.ts'
import { logical } from './logical.ts'
import { method } from './method.ts'
import type { Operator } from './operator.ts'
import { statement } from './statement.ts'

/** Every kind of fault that is tried. */
export const operators: readonly Operator[] = [
  ...[comparison, equality, logical, condition, arithmetic],
  ...[literal, statement, element, chaining, method],
]
