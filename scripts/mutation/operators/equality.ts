import { between, type Operator, replaced, textOf } from './operator.ts'

const contraries: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '==': '!=',
  '!=': '==',
}

/** Equal for unequal, and the contrary of `in` and `instanceof`. */
export const equality: Operator = {
  name: 'equality',
  editsOf: (place) => {
    const { node } = place
    if (node.type !== 'BinaryExpression') return []
    const { left, operator, right } = node
    if (operator === 'in' || operator === 'instanceof') return [replaced(node, `!(${textOf(place, node)})`)]
    const contrary = contraries[operator]
    return contrary === undefined ? [] : [between(place, [left, right], [operator, contrary])]
  },
}
