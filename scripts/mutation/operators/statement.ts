import type { Statement } from 'oxc-parser'
import { type Operator, replaced } from './operator.ts'

/** A step that is forgotten: a call, an assignment, or a guard that leaves early. */
export const statement: Operator = {
  name: 'statement',
  editsOf: ({ node }) => {
    if (node.type === 'ExpressionStatement') {
      const { expression } = node
      const isSuper = expression.type === 'CallExpression' && expression.callee.type === 'Super'
      const isDirective = expression.type === 'Literal'
      return isSuper || isDirective ? [] : [replaced(node, ';')]
    }
    if (node.type !== 'IfStatement' || node.alternate || !leaves(node.consequent)) return []
    return [replaced(node, ';')]
  },
}

function leaves(node: Statement): boolean {
  if (node.type === 'BlockStatement') {
    const last = node.body.at(-1)
    return last !== undefined && leaves(last)
  }
  return ['ReturnStatement', 'ThrowStatement', 'ContinueStatement', 'BreakStatement'].includes(node.type)
}
