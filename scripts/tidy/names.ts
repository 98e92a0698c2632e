import { type Finding, isRecording, type SourceFile } from './finding.ts'

const empty = /^(utils?|helpers?|common|misc|types|constants|base|impl)$/
const emptyPart = /(^|-)(utils?|helpers?|misc)(-|$)/
const known = /^[^.]+(\.(spec|property|model|contract|test-d|config))?\.ts$/

/** Names that say what is inside: no drawers, and a known ending for each kind of test. The linter holds the spelling. */
export function names(file: SourceFile): readonly Finding[] {
  if (isRecording(file.path)) return []
  const segments = file.path.split('/')
  const name = segments.at(-1) ?? ''
  const stems = [
    ...segments.slice(0, -1),
    name.slice(0, name.indexOf('.') === -1 ? undefined : name.indexOf('.')),
  ]
  const drawer = stems.find((stem) => empty.test(stem) || emptyPart.test(stem))
  const findings: Finding[] = []
  const report = (message: string): void => {
    findings.push({ rule: 'names', level: 'error', path: file.path, line: 1, message })
  }
  if (drawer !== undefined) report(`"${drawer}" does not say what is inside. Name the concept.`)
  if (name.endsWith('.ts') && !known.test(name)) report('of no known kind of test.')
  return findings
}
