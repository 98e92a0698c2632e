import type { Node } from 'oxc-parser'
import { type Operator, replaced, textOf } from './operator.ts'

/** Signs whose contrary the operators of comparison and equality try. */
const compared = new Set(['<', '<=', '>', '>=', '===', '!==', '==', '!=', 'in', 'instanceof'])

/** A condition that asks for the contrary. */
export const condition: Operator = {
  name: 'condition',
  editsOf: (place) => {
    const { node } = place
    if (node.type === 'UnaryExpression' && node.operator === '!') {
      return [replaced(node, `!!${textOf(place, node.argument)}`)]
    }
    if (node.type !== 'IfStatement' && node.type !== 'ConditionalExpression') return []
    return isNegatedElsewhere(node.test) ? [] : [replaced(node.test, `!(${textOf(place, node.test)})`)]
  },
}

function isNegatedElsewhere(test: Node): boolean {
  return test.type === 'BinaryExpression'
    ? compared.has(test.operator)
    : test.type === 'UnaryExpression' && test.operator === '!'
}
