import { type ExportNamedDeclaration, parseSync } from 'oxc-parser'
import { type Finding, lineAt, type SourceFile } from './finding.ts'

/**
 * Every exported declaration of a package has a docstring. Declarations that follow each other without a blank
 * line are one paragraph and share the docstring above it, as a list of names and the type made from it do.
 */
export function docstrings(file: SourceFile): readonly Finding[] {
  if (!/^packages\/[^/]+\/src\/.*\.ts$/.test(file.path)) return []
  const { program, comments } = parseSync(file.path, file.text)
  const docs = comments.filter(({ type, value }) => type === 'Block' && value.startsWith('*'))
  const findings: Finding[] = []
  let documentedUpTo = -1
  for (const node of program.body) {
    const follows =
      documentedUpTo !== -1 && /^[ \t]*\n?[ \t]*$/.test(file.text.slice(documentedUpTo, node.start))
    const documented =
      follows || docs.some(({ end }) => end <= node.start && isGap(file.text.slice(end, node.start)))
    documentedUpTo = documented ? node.end : -1
    if (documented) continue
    const declared = node.type === 'ExportNamedDeclaration' ? namesOf(node.declaration) : []
    for (const name of declared) {
      const line = lineAt(file.text, node.start)
      const message = `${name} is exported without a docstring.`
      findings.push({ rule: 'docstrings', level: 'error', path: file.path, line, message })
    }
  }
  return findings
}

/** White space or a linter's directive: nothing that parts a docstring from what it describes. */
function isGap(text: string): boolean {
  return /^\s*(\/\/ oxlint-[^\n]*\n\s*)*$/.test(text)
}

function namesOf(declaration: ExportNamedDeclaration['declaration']): readonly string[] {
  if (!declaration) return []
  if (declaration.type === 'VariableDeclaration') {
    return declaration.declarations.map(({ id }) => (id.type === 'Identifier' ? id.name : 'a pattern'))
  }
  return 'id' in declaration && declaration.id?.type === 'Identifier' ? [declaration.id.name] : []
}
