import { type Finding, isCode, type SourceFile } from './finding.ts'

const codeLinesWanted = 300
const maxCodeLines = 400
const maxReadmeLines = 150

/** A file that fits a reader's head: code of at most 400 lines, with a warning from 300 on; a README of at most 150. */
export function sizes(file: SourceFile): readonly Finding[] {
  const lines = file.text.split('\n').length - (file.text.endsWith('\n') ? 1 : 0)
  const finding = (level: Finding['level'], max: number): readonly Finding[] => [
    { rule: 'sizes', level, path: file.path, line: max + 1, message: `${lines} lines; at most ${max}.` },
  ]
  if (/(^|\/)README\.md$/.test(file.path) && lines > maxReadmeLines) return finding('error', maxReadmeLines)
  if (!isCode(file.path)) return []
  if (lines > maxCodeLines) return finding('error', maxCodeLines)
  return lines > codeLinesWanted ? finding('warning', codeLinesWanted) : []
}
