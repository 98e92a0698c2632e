import { type Operator, replaced, textOf } from './operator.ts'

const others: ReadonlyMap<string, string> = new Map(
  Object.entries({
    some: 'every',
    every: 'some',
    find: 'findLast',
    findLast: 'find',
    findIndex: 'findLastIndex',
    findLastIndex: 'findIndex',
    indexOf: 'lastIndexOf',
    lastIndexOf: 'indexOf',
    startsWith: 'endsWith',
    endsWith: 'startsWith',
  }),
)

/** Methods whose value is of the same kind as what they are called on. */
const leftOut = new Set(
  ['filter', 'slice', 'toSorted', 'sort', 'toReversed', 'reverse', 'flat', 'concat'].concat([
    ...['trim', 'trimStart', 'trimEnd', 'toLowerCase', 'toUpperCase', 'replace', 'replaceAll', 'normalize'],
  ]),
)

/** Some for every, the first for the last, and a call left out that filters, cuts, sorts or cleans. */
export const method: Operator = {
  name: 'method',
  editsOf: (place) => {
    const { node } = place
    if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return []
    const { object, property, computed } = node.callee
    if (computed || property.type !== 'Identifier') return []
    const other = others.get(property.name)
    if (other !== undefined) return [replaced(property, other)]
    return leftOut.has(property.name) ? [replaced(node, textOf(place, object))] : []
  },
}
