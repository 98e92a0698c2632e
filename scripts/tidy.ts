// Checks that neither the compiler nor the linter makes: arrows, links, words and patterns.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { arrows } from './tidy/arrows.ts'
import type { Finding, Rule, SourceFile } from './tidy/finding.ts'
import { links } from './tidy/links.ts'
import { patternCache, patterns } from './tidy/patterns.ts'
import { words } from './tidy/words.ts'

const rules: readonly Rule[] = [arrows, words]
const root = join(import.meta.dirname, '..')

/** Files that git knows or would add, so that a new file is judged before it is committed. */
function committedPaths(): readonly string[] {
  const listing = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
  })
  return listing
    .toString()
    .split('\0')
    .filter((path) => path !== '' && existsSync(join(root, path)))
}

/** The file at a path, unless it is no text. */
function textFile(path: string): readonly SourceFile[] {
  const bytes = readFileSync(join(root, path))
  return bytes.includes(0) ? [] : [{ path, text: bytes.toString() }]
}

const paths = committedPaths()
const files = paths.flatMap(textFile)
const findings: readonly Finding[] = [
  ...files.flatMap((file) => rules.flatMap((rule) => rule(file))),
  ...links(files, paths),
  ...(await patterns(files, patternCache(root))),
]
for (const { rule, level, path, line, message } of findings) {
  console.log(`${path}:${line}: ${level} ${rule}: ${message}`)
}
const errors = findings.filter(({ level }) => level === 'error').length
console.log(`tidy: ${files.length} files, ${errors} errors, ${findings.length - errors} warnings`)
process.exitCode = errors > 0 ? 1 : 0
