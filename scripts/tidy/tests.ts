import type { Finding, SourceFile } from './finding.ts'

const test = /(^|\/)test\/.*\.ts$/
const skip = /\b(?:describe|it|test|suite)(?:\.\w+)*\.(?:skip|skipIf|runIf|todo|fails)\b/
const comment = /\/\/\s*\S|\*\//

/** A test that is left out says why in a comment on its line or the line before. The linter refuses focused tests. */
export function tests(file: SourceFile): readonly Finding[] {
  if (!test.test(file.path)) return []
  const lines = file.text.split('\n')
  return lines.flatMap((line, index): readonly Finding[] => {
    const report = (message: string): readonly Finding[] => [
      { rule: 'tests', level: 'error', path: file.path, line: index + 1, message },
    ]
    if (!skip.test(line) || comment.test(line) || comment.test(lines[index - 1] ?? '')) return []
    return report('a test is left out without a comment that says why.')
  })
}
