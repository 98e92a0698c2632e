// Runs the test files of one package, and writes down which functions of its sources each of them calls:
// `node survey-process.ts PACKAGE FILE`. A test file that fails is named and left out of the count: mutants then run it as
// if it called every function.
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, matchesGlob, relative } from 'node:path'
import { createVitest, type Vitest } from 'vitest/node'
import { allTests, inOwnProcess, onPostgres, thoroughOnly } from '../../testing/selection.ts'
import { testedBy } from '../area.ts'
import { digestOf, functionsIn } from '../survey.ts'
import { trialEnvironment } from './trial-conditions.ts'

const root = join(import.meta.dirname, '../../..')
const [, , name = '', file = ''] = process.argv
const lines = `${file}.lines`
/** The folders whose functions are counted. */
const sources = testedBy(name).map((tested) => `packages/${tested}/src/`)

/** Adds what counts calls to a source file, and to a test file what writes them down. */
function counted(path: string, text: string): string | undefined {
  if (sources.some((beginning) => path.startsWith(beginning))) {
    const inserted = functionsIn(path, text).flatMap(({ index, start, end, isExpression }) => {
      const count = `(globalThis.__called ??= new Set()).add(${JSON.stringify(`${path}#${index}`)})`
      return isExpression
        ? [
            { at: start, what: `(${count}, ` },
            { at: end, what: ')' },
          ]
        : [{ at: start + 1, what: ` ${count}; ` }]
    })
    return inserted
      .sort((a, b) => b.at - a.at)
      .reduce((whole, { at, what }) => whole.slice(0, at) + what + whole.slice(at), text)
  }
  if (!allTests.some((pattern) => matchesGlob(path, pattern))) return undefined
  // What was called since the test file before was called when modules were loaded.
  return `import { appendFileSync as writeCalls } from 'node:fs'
import { afterAll as afterAllTests } from 'vitest'
const calledAtLoad = [...(globalThis.__called ?? [])]
globalThis.__called = new Set()
afterAllTests(() => {
  const calls = { test: ${JSON.stringify(path)}, calledAtLoad, called: [...globalThis.__called] }
  writeCalls(${JSON.stringify(lines)}, JSON.stringify(calls) + '\\n')
  globalThis.__called = new Set()
})
${text}`
}

/** Vitest with the test files that share processes, or with those that need one of their own. */
function startVitest({ isolate }: { readonly isolate: boolean }): Promise<Vitest> {
  return createVitest(
    'test',
    {
      config: false,
      root,
      watch: false,
      include: [...(isolate ? inOwnProcess : allTests)],
      exclude: ['**/node_modules/**', ...onPostgres, ...thoroughOnly, ...(isolate ? [] : inOwnProcess)],
      isolate,
      maxWorkers: 2,
      fsModuleCache: false,
      testTimeout: 60_000,
      silent: true,
      reporters: [{}],
      env: trialEnvironment(),
    },
    {
      server: { watch: null },
      plugins: [
        {
          name: 'counted-calls',
          enforce: 'pre',
          load: (id) =>
            id.startsWith(root) ? counted(relative(root, id), readFileSync(id, 'utf8')) : undefined,
        },
      ],
    },
  )
}

writeFileSync(lines, '')
const failed: string[] = []
const hasOwnProcess = inOwnProcess.some((test) => test.startsWith(`packages/${name}/test/`))
for (const isolate of hasOwnProcess ? [false, true] : [false]) {
  const vitest = await startVitest({ isolate })
  const { testModules } = await vitest.start([`packages/${name}/test/`])
  await vitest.close()
  const ended = testModules.filter((module) => module.state() === 'failed')
  failed.push(...ended.map(({ moduleId }) => relative(root, moduleId)))
}
for (const test of failed) console.error(`${test} fails without any fault; the survey does not count it.`)
const digest = (path: string): string => digestOf(readFileSync(join(root, path), 'utf8'))
const records = readFileSync(lines, 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line) as { test: string; calledAtLoad: string[]; called: string[] })
const tests = Object.fromEntries(
  records
    .filter(({ test }) => !failed.includes(test))
    .map(({ test, called }) => [test, { digest: digest(test), called: called.sort() }]),
)
const atLoad = [...new Set(records.flatMap(({ calledAtLoad }) => calledAtLoad))].sort()
const files = Object.fromEntries(
  sources
    .flatMap((folder) => globSync(`${folder}**/*.ts`, { cwd: root }))
    .map((path) => [path, digest(path)]),
)
rmSync(lines)
if (Object.keys(tests).length === 0) throw new Error(`No test file of ${name} passes.`)
writeFileSync(file, JSON.stringify({ files, atLoad, tests }))
// Vitest has set it to 1 where a test failed.
process.exitCode = 0
