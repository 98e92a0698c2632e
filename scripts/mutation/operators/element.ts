import type { Node } from 'oxc-parser'
import type { Edit, Operator } from './operator.ts'

/** An element of a list that is forgotten, and a member of an object that is a literal or spread. */
export const element: Operator = {
  name: 'element',
  editsOf: ({ node, source }) => {
    if (node.type === 'ArrayExpression') {
      const elements = node.elements.filter((each) => each !== null)
      return elements.length === node.elements.length
        ? elements.map((each, index) => without(elements, each, index, source))
        : []
    }
    if (node.type !== 'ObjectExpression') return []
    return node.properties.flatMap((each, index) =>
      each.type === 'SpreadElement' || each.value.type === 'Literal'
        ? [without(node.properties, each, index, source)]
        : [],
    )
  },
}

/** Takes the comma after it along, or the one before it where it is the last. */
function without(all: readonly Node[], { start, end }: Node, index: number, source: string): Edit {
  const next = all[index + 1]
  if (next) return { start, end: next.start, text: '' }
  const comma = /^\s*,/.exec(source.slice(end, end + 200))?.[0].length ?? 0
  return { start: all[index - 1]?.end ?? start, end: end + comma, text: '' }
}
