import type { Operator } from './operator.ts'

/** A value that may be missing, taken for one that is there. */
export const chaining: Operator = {
  name: 'chaining',
  editsOf: ({ node, source }) => {
    if (node.type !== 'MemberExpression' && node.type !== 'CallExpression') return []
    if (!node.optional) return []
    const start = source.indexOf('?.', node.type === 'CallExpression' ? node.callee.end : node.object.end)
    const isNamed = node.type === 'MemberExpression' && !node.computed
    return [{ start, end: start + 2, text: isNamed ? '.' : '' }]
  },
}
