import type { Node } from 'oxc-parser'
import { between, type Edit, type Operator, type Place, replaced, textOf } from './operator.ts'

const others: Readonly<Record<string, string>> = {
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '%': '*',
  '**': '*',
}

/** Added for subtracted, multiplied for divided, the smaller for the greater, and a sign left out. */
export const arithmetic: Operator = {
  name: 'arithmetic',
  editsOf: (place) => [...operation(place), ...assignment(place), ...extreme(place)],
}

function operation(place: Place): readonly Edit[] {
  const { node } = place
  if (node.type === 'UnaryExpression' && node.operator === '-') {
    return [replaced(node, textOf(place, node.argument))]
  }
  if (node.type !== 'BinaryExpression') return []
  const other = others[node.operator]
  if (other === undefined || isText(node.left) || isText(node.right)) return []
  return [between(place, [node.left, node.right], [node.operator, other])]
}

function assignment(place: Place): readonly Edit[] {
  const { node } = place
  if (node.type === 'UpdateExpression') {
    const start = node.prefix ? node.start : node.end - 2
    return [{ start, end: start + 2, text: node.operator === '++' ? '--' : '++' }]
  }
  if (node.type !== 'AssignmentExpression' || node.operator === '=' || isText(node.right)) return []
  const other = others[node.operator.slice(0, -1)]
  return other === undefined ? [] : [between(place, [node.left, node.right], [node.operator, `${other}=`])]
}

function extreme({ node }: Place): readonly Edit[] {
  if (node.type !== 'MemberExpression' || node.computed) return []
  const { object, property } = node
  if (object.type !== 'Identifier' || object.name !== 'Math' || property.type !== 'Identifier') return []
  if (property.name !== 'min' && property.name !== 'max') return []
  return [replaced(property, property.name === 'min' ? 'max' : 'min')]
}

/** Whether `+` here joins texts. */
function isText(node: Node): boolean {
  if (node.type === 'TemplateLiteral') return true
  if (node.type === 'BinaryExpression') return isText(node.left) || isText(node.right)
  return node.type === 'Literal' && typeof node.value === 'string'
}
