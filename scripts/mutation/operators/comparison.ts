import { between, type Operator } from './operator.ts'

/** For each comparison the same with its boundary moved, and its contrary. */
const others: Readonly<Record<string, readonly [moved: string, contrary: string]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
}

/** A boundary that is one off, and a comparison the wrong way round. */
export const comparison: Operator = {
  name: 'comparison',
  editsOf: (place) => {
    const { node } = place
    if (node.type !== 'BinaryExpression') return []
    const { left, operator, right } = node
    return (others[operator] ?? []).map((other) => between(place, [left, right], [operator, other]))
  },
}
