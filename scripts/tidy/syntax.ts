import { parseSync, Visitor } from 'oxc-parser'
import { type Finding, lineAt, type SourceFile } from './finding.ts'

const source = /^packages\/[^/]+\/src\/.*\.ts$/

/** Sources are published as they are written, but for their types: Node 22 has to read them, and knows no `using`. */
export function syntax(file: SourceFile): readonly Finding[] {
  if (!source.test(file.path) || !/\busing\b/.test(file.text)) return []
  const found: Finding[] = []
  new Visitor({
    VariableDeclaration({ kind, start }) {
      if (kind !== 'using' && kind !== 'await using') return
      const message = `Node 22 does not know "${kind}": use try and finally.`
      const line = lineAt(file.text, start)
      found.push({ rule: 'syntax', level: 'error', path: file.path, line, message })
    },
  }).visit(parseSync(file.path, file.text).program)
  return found
}
