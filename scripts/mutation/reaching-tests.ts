import { globSync } from 'node:fs'
import { matchesGlob, posix } from 'node:path'
import { allTests, onPostgres, thoroughOnly } from '../testing/selection.ts'
import { Imports } from './imports.ts'
import type { Memory } from './memory.ts'
import { lastSurvey } from './survey.ts'

/** Returns the test files of a package that may notice a fault at a place of a source file, in the order in which they are to run. */
export type TestsOf = (tester: string, path: string, offset: number) => readonly string[]

/**
 * Finds the test files of a package that load a source file and, where a survey of the package was taken, call the
 * function at the place. Those come first that noticed a fault of the file before, that share words with its path, that
 * take little time. Tests on Postgres are left out, and so are those that only a thorough run has.
 */
export function reachingTests(root: string, memory: Memory): TestsOf {
  const imports = new Imports(root)
  const left = [...onPostgres, ...thoroughOnly]
  const tests = globSync([...allTests], { cwd: root, exclude: ['**/node_modules/**'] })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => !left.some((pattern) => matchesGlob(path, pattern)))
  const filesOf = remembering((test: string) => imports.reachedFrom(test))
  const surveyOf = remembering((name: string) => lastSurvey(root, name))
  const inOrder = (name: string, path: string, offset: number): readonly string[] => {
    const rank = (test: string): readonly number[] => [
      -memory.noticed(path, test),
      -sharedWords(path, test),
      memory.milliseconds(test),
    ]
    return tests
      .filter((test) => test.startsWith(`packages/${name}/`) && filesOf(test).has(path))
      .filter((test) => surveyOf(name)?.mayNotice(test, path, offset) ?? true)
      .map((test) => ({ test, rank: rank(test) }))
      .sort((a, b) => compared(a.rank, b.rank))
      .map(({ test }) => test)
  }
  return inOrder
}

/** The same function, which finds each answer once. */
function remembering<Answer>(find: (name: string) => Answer): (name: string) => Answer {
  const found = new Map<string, Answer>()
  return (name) => {
    const answer = found.has(name) ? (found.get(name) as Answer) : find(name)
    found.set(name, answer)
    return answer
  }
}

function compared(a: readonly number[], b: readonly number[]): number {
  for (const [index, value] of a.entries()) {
    const difference = value - (b[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** How many words of the name of a test file are in the path of a source file, plurals aside. */
function sharedWords(path: string, test: string): number {
  const words = (text: string): ReadonlySet<string> =>
    new Set(text.split(/[^a-z0-9]+/i).map((word) => word.replace(/s$/, '')))
  const [, , , ...below] = path.split('/')
  return words(below.join('/')).intersection(words(posix.basename(test).split('.')[0] ?? '')).size
}
