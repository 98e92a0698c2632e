import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync, Visitor } from 'oxc-parser'
import { check } from 'recheck'
import { type Finding, lineAt, type SourceFile } from './finding.ts'

/** A regular expression as a source file writes it. */
export interface WrittenPattern {
  readonly path: string
  readonly line: number
  readonly source: string
  readonly flags: string
}

/** Files that make patterns on purpose, of texts that a caller hands over for it or of parts of them. */
const makersOfPatterns: ReadonlySet<string> = new Set([
  'packages/cli/src/verbs/check/regression.ts',
  'packages/cli/src/terminal/paint.ts',
  'packages/cli/src/terminal/visible-text.ts',
  'packages/replay/src/secrets.ts',
  'packages/tools/src/input/json-schema.ts',
])

/** Milliseconds for one pattern. One that takes longer to judge is too hard to read, too. */
const timeout = 30_000

/**
 * No pattern in the sources of a package may go back over a text more than a fixed number of times: texts come from
 * models, tools, files and people, and a pattern that backtracks stops the whole process. `recheck` finds those that take
 * exponential or polynomial time; what it found to be linear is remembered in `cacheFile`, since judging takes seconds.
 */
export async function patterns(files: readonly SourceFile[], cacheFile: string): Promise<readonly Finding[]> {
  const linear = new Set(remembered(cacheFile))
  const findings: Finding[] = []
  const sources = files.filter(({ path }) => /^packages\/[^/]+\/src\/.*\.ts$/.test(path))
  for (const pattern of sources.flatMap(patternsOf)) {
    const written = `/${pattern.source}/${pattern.flags}`
    if (linear.has(written)) continue
    const fault = await faultOf(pattern)
    if (fault === undefined) linear.add(written)
    else findings.push(findingAt(pattern, `${written} ${fault}`))
  }
  mkdirSync(dirname(cacheFile), { recursive: true })
  writeFileSync(cacheFile, JSON.stringify([...linear].sort(), undefined, 1))
  return [...findings, ...sources.flatMap(madePatterns)]
}

/** The regular expressions that a file writes out. */
function patternsOf(file: SourceFile): readonly WrittenPattern[] {
  const found: WrittenPattern[] = []
  new Visitor({
    Literal(node) {
      if (!('regex' in node)) return
      const { pattern: source, flags } = node.regex
      found.push({ path: file.path, line: lineAt(file.text, node.start), source, flags })
    },
  }).visit(parseSync(file.path, file.text).program)
  return found
}

/** Calls of `RegExp`, whose patterns no rule can see. */
function madePatterns(file: SourceFile): readonly Finding[] {
  if (makersOfPatterns.has(file.path)) return []
  const starts: number[] = []
  const visit = (node: { readonly start: number; readonly callee: { readonly type: string } }): void => {
    const { callee } = node
    if (callee.type === 'Identifier' && 'name' in callee && callee.name === 'RegExp') starts.push(node.start)
  }
  new Visitor({ CallExpression: visit, NewExpression: visit }).visit(parseSync(file.path, file.text).program)
  return starts.map((start) =>
    findingAt(
      { path: file.path, line: lineAt(file.text, start) },
      'makes a pattern that cannot be judged here. Write it out between slashes, or compare texts.',
    ),
  )
}

async function faultOf({ source, flags }: WrittenPattern): Promise<string | undefined> {
  // The checker knows neither `d` nor `v`; the first only asks for places.
  const verdict = await check(source, flags.replaceAll(/[dv]/g, ''), { timeout })
  if (verdict.status === 'safe') return undefined
  if (verdict.status === 'unknown') {
    return `cannot be judged (${verdict.error.kind}). Write it more simply, or scan the text by hand.`
  }
  const attack = JSON.stringify(verdict.attack.pattern).slice(0, 120)
  return `takes ${verdict.complexity.summary} time, as on ${attack}. Let no two of its parts match the same text.`
}

function findingAt({ path, line }: Pick<WrittenPattern, 'path' | 'line'>, message: string): Finding {
  return { rule: 'patterns', level: 'error', path, line, message }
}

function remembered(cacheFile: string): readonly string[] {
  try {
    return JSON.parse(readFileSync(cacheFile, 'utf8')) as string[]
  } catch {
    return []
  }
}

/** Where verdicts are remembered: away from what is committed, and anew for each version of the checker. */
export function patternCache(root: string): string {
  const { version } = JSON.parse(
    readFileSync(join(root, 'node_modules', 'recheck', 'package.json'), 'utf8'),
  ) as { readonly version: string }
  return join(root, 'node_modules', '.cache', `linear-patterns-${version}.json`)
}
