/** What wraps an expression for the compiler alone. */
const wrappers: ReadonlySet<string> = new Set([
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSNonNullExpression',
  'TSInstantiationExpression',
  'ParenthesizedExpression',
])

/** Where something stands, how it was spelled, and what only the compiler looks at. */
const meaningless: ReadonlySet<string> = new Set([
  ...['start', 'end', 'range', 'loc', 'raw'],
  ...['declare', 'definite', 'accessibility', 'readonly', 'override', 'abstract', 'optional'],
  ...['importKind', 'exportKind'],
])

/** What a syntax tree does when it runs, as text: without types, comments, places and spelling. */
export function meaningOf(program: unknown): string {
  return JSON.stringify(cleaned(program))
}

function cleaned(node: unknown): unknown {
  if (typeof node === 'bigint') return `${node}n`
  if (Array.isArray(node)) return node.map(cleaned).filter((item) => item !== undefined)
  if (typeof node !== 'object' || node === null) return node
  if (node instanceof RegExp) return String(node)
  const fields = node as Readonly<Record<string, unknown>>
  const { type } = fields
  if (typeof type === 'string') {
    if (wrappers.has(type)) return cleaned(fields['expression'])
    if (type.startsWith('TS') || fields['importKind'] === 'type' || fields['exportKind'] === 'type')
      return undefined
  }
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([key]) => !meaningless.has(key))
      .map(([key, value]) => [key, cleaned(value)]),
  )
}
