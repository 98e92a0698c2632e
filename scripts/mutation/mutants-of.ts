import { type Node, parseSync, visitorKeys } from 'oxc-parser'
import type { Mutant } from './mutant.ts'
import { operators } from './operators/table.ts'
import type { Place } from './operators/operator.ts'

/** Nodes of types that hold an expression of the program. */
const aroundExpressions = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression'])
/** What declares and does nothing. */
const declarations = new Set(['ImportDeclaration', 'ExportAllDeclaration'])

/** Returns every mutant of a source file, in the order of the file. */
export function mutantsOf(path: string, source: string): readonly Mutant[] {
  const { program, errors } = parseSync(path, source)
  if (errors.length > 0) throw new Error(`${path} does not parse: ${errors[0]?.message}`)
  const lines = lineStarts(source)
  const found = new Map<string, Omit<Mutant, 'occurrence'>>()
  for (const place of placesIn({ node: program, ancestors: [], source })) {
    for (const { name, editsOf } of operators) {
      for (const edit of editsOf(place)) {
        const line = lines.findLastIndex((start) => start <= edit.start) + 1
        const original = inOneLine(source.slice(edit.start, edit.end))
        const within = nameAround(place)
        // Two operators may find the same fault.
        const same = `${edit.start} ${edit.end} ${edit.text}`
        if (found.has(same)) continue
        found.set(same, { path, operator: name, within, line, edit, original, becomes: inOneLine(edit.text) })
      }
    }
  }
  return numbered([...found.values()].sort((a, b) => a.edit.start - b.edit.start))
}

/** The places of a tree, from the root, types left out. */
function* placesIn(place: Place): Generator<Place> {
  const { node, ancestors, source } = place
  const isType = node.type.startsWith('TS') && !aroundExpressions.has(node.type)
  if (isType || declarations.has(node.type)) return
  yield place
  const keys = aroundExpressions.has(node.type) ? ['expression'] : (visitorKeys[node.type] ?? [])
  for (const key of keys) {
    const value = (node as unknown as Record<string, Node | readonly (Node | null)[] | null>)[key]
    for (const child of Array.isArray(value) ? (value as readonly (Node | null)[]) : [value as Node | null]) {
      if (child) yield* placesIn({ node: child, ancestors: [node, ...ancestors], source })
    }
  }
}

/** The name of the nearest function around a place. */
function nameAround({ node, ancestors }: Place): string {
  for (const each of [node, ...ancestors]) {
    if (each.type === 'FunctionDeclaration' && each.id) return each.id.name
    if (each.type === 'MethodDefinition' || each.type === 'PropertyDefinition') return keyName(each.key)
    if (each.type === 'VariableDeclarator' && each.init?.type === 'ArrowFunctionExpression') {
      return each.id.type === 'Identifier' ? each.id.name : ''
    }
    if (each.type === 'Property' && each.method) return keyName(each.key)
  }
  return ''
}

function keyName(key: Node): string {
  if (key.type === 'Identifier') return key.name
  return key.type === 'PrivateIdentifier' ? `#${key.name}` : ''
}

function lineStarts(source: string): readonly number[] {
  return [0, ...[...source.matchAll(/\n/g)].map(({ index }) => index + 1)]
}

function inOneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}

function numbered(mutants: readonly Omit<Mutant, 'occurrence'>[]): readonly Mutant[] {
  const counts = new Map<string, number>()
  return mutants.map((mutant) => {
    const { operator, within, original, becomes } = mutant
    const same = JSON.stringify([operator, within, original, becomes])
    const occurrence = counts.get(same) ?? 0
    counts.set(same, occurrence + 1)
    return { ...mutant, occurrence }
  })
}
