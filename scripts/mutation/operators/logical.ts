import { type Operator, replaced, textOf } from './operator.ts'

/** One operand forgotten, `and` for `or`, and an assignment that does not ask what was there. */
export const logical: Operator = {
  name: 'logical',
  editsOf: (place) => {
    const { node } = place
    if (node.type === 'AssignmentExpression' && ['&&=', '||=', '??='].includes(node.operator)) {
      return [replaced(node, `${textOf(place, node.left)} = ${textOf(place, node.right)}`)]
    }
    if (node.type !== 'LogicalExpression') return []
    const left = `(${textOf(place, node.left)})`
    const right = `(${textOf(place, node.right)})`
    const alone = [replaced(node, left), replaced(node, right)]
    if (node.operator === '??') return alone
    return [...alone, replaced(node, `(${left} ${node.operator === '&&' ? '||' : '&&'} ${right})`)]
  },
}
