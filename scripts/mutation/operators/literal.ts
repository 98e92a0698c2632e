import { type Operator, replaced } from './operator.ts'

/** True for false, and a number that is one too high. */
export const literal: Operator = {
  name: 'literal',
  editsOf: ({ node, ancestors }) => {
    if (node.type !== 'Literal') return []
    const [parent] = ancestors
    if (parent?.type === 'Property' && parent.key === node) return []
    const { value } = node
    if (typeof value === 'boolean') return [replaced(node, String(!value))]
    if (typeof value === 'number') return [replaced(node, String(value + 1))]
    return typeof value === 'bigint' ? [replaced(node, `${value + 1n}n`)] : []
  },
}
