import type { Finding, SourceFile } from './finding.ts'

const readmeLinesMax = 150

/** A README that fits a reader's head. The linter holds the length of code (`max-lines`). */
export function sizes({ path, text }: SourceFile): readonly Finding[] {
  const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
  if (!/(^|\/)README\.md$/.test(path) || lines <= readmeLinesMax) return []
  const message = `${lines} lines; at most ${readmeLinesMax}.`
  return [{ rule: 'sizes', level: 'error', path, line: readmeLinesMax + 1, message }]
}
