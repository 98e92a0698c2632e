import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'

/**
 * Reads JSON, with comments and commas at the end of lists, as editors write it: its value, or a sentence about the first
 * fault, without anything of the text.
 */
export function readJsonWithComments(text: string): { readonly value: unknown } | { readonly fault: string } {
  const errors: ParseError[] = []
  const json = withoutMark(text)
  try {
    const tree = parseTree(json, errors, { allowTrailingComma: true })
    const [first] = errors
    if (first !== undefined) {
      const before = json.slice(0, first.offset)
      const place = `line ${before.split('\n').length}, column ${before.length - before.lastIndexOf('\n')}`
      return { fault: `It is not JSON at ${place} (${printParseErrorCode(first.error)}).` }
    }
    return tree === undefined ? { fault: 'It is not JSON (it is empty).' } : { value: readNode(tree) }
  } catch (error) {
    if (error instanceof RangeError) return { fault: 'It is nested too deeply.' }
    throw error
  }
}

/** Editors of Windows put a mark before the first character. */
export function withoutMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text
}

/** Own properties only, whatever they are called. */
function readNode(node: Node): unknown {
  if (node.type === 'array') return (node.children ?? []).map(readNode)
  if (node.type !== 'object') return node.value
  return Object.fromEntries(
    (node.children ?? []).map(({ children: [key, value] = [] }) => [
      String(key?.value),
      value === undefined ? undefined : readNode(value),
    ]),
  )
}
