import type { Finding, SourceFile } from './finding.ts'

const test = /(^|\/)test\/.*\.ts$/
const focus = /\b(?:describe|it|test|suite)(?:\.\w+)*\.only\b/
const skip = /\b(?:describe|it|test|suite)(?:\.\w+)*\.(?:skip|skipIf|runIf|todo|fails)\b/
const comment = /\/\/\s*\S|\*\//

/** Every test runs: none is focused, and one that is left out says why in a comment on its line or the line before. */
export function tests(file: SourceFile): readonly Finding[] {
  if (!test.test(file.path)) return []
  const lines = file.text.split('\n')
  return lines.flatMap((line, index): readonly Finding[] => {
    const report = (message: string): readonly Finding[] => [
      { rule: 'tests', level: 'error', path: file.path, line: index + 1, message },
    ]
    if (focus.test(line)) return report('a focused test silences the others.')
    if (!skip.test(line) || comment.test(line) || comment.test(lines[index - 1] ?? '')) return []
    return report('a test is left out without a comment that says why.')
  })
}
