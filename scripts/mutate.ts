// Proves that the tests would notice: breaks one thing at a time in the sources, and demands that a test of the package
// fails. `pnpm mutate [WORD …]` tries the mutants of every file whose path holds a word, or of the area of that name.
//   --sample N     tries N of them, drawn by the seed
//   --seed S       a whole number; 1 where it is not given
//   --at PATH:LINE tries the mutants of one line
//   --operator O   only mutants of this kind
//   --list         prints the mutants and tries none
//   --survey       first counts which functions each test file calls: takes as long as the tests of the packages, and
//                  lets each later mutant run only the tests that call the function that it is in
//   --verbose      prints what noticed each of the others, too
//   --workers N    how many are tried at the same time; 2 where it is not given
// Tests that start processes see the sources on disk there, without the fault.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { areaNameOf, areas, testersOf } from './mutation/area.ts'
import { withoutEquivalents } from './mutation/equivalent.ts'
import { Memory } from './mutation/memory.ts'
import { diffOf, type Mutant, sampleOf } from './mutation/mutant.ts'
import { mutantsOf } from './mutation/mutants-of.ts'
import { operators } from './mutation/operators/table.ts'
import { reachingTests } from './mutation/reaching-tests.ts'
import { summaryOf } from './mutation/summary.ts'
import { takeSurvey } from './mutation/survey.ts'
import { tryAll } from './mutation/trial/try-all.ts'

const root = join(import.meta.dirname, '..')

/** Fails with one line: what is wrong, and what is expected. */
function refuse(message: string): never {
  console.error(message)
  process.exit(2)
}

function commandLine() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        sample: { type: 'string' },
        seed: { type: 'string', default: '1' },
        at: { type: 'string' },
        operator: { type: 'string' },
        list: { type: 'boolean', default: false },
        survey: { type: 'boolean', default: false },
        verbose: { type: 'boolean', default: false },
        workers: { type: 'string', default: '2' },
      },
    })
  } catch (error) {
    return refuse((error as Error).message)
  }
}

const { values, positionals: words } = commandLine()

function wholeNumber(name: string, text: string, min: number): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < min || text.trim() === '') {
    refuse(`--${name} is ${text || 'empty'}; expected a whole number from ${min} on.`)
  }
  return number
}

const seed = wholeNumber('seed', values.seed, 0)
const workers = wholeNumber('workers', values.workers, 1)
const count = values.sample === undefined ? undefined : wholeNumber('sample', values.sample, 1)
if (values.operator !== undefined && !operators.some(({ name }) => name === values.operator)) {
  refuse(
    `No operator is called ${values.operator}. There are ${operators.map(({ name }) => name).join(', ')}.`,
  )
}

/** Where `--at` points. */
function pointOf(text: string): { readonly path: string; readonly line: number } {
  const [, path = '', line = ''] = /^(.+):(\d+)$/.exec(text) ?? refuse(`--at is ${text}; expected PATH:LINE.`)
  return { path, line: Number(line) }
}

const point = values.at === undefined ? undefined : pointOf(values.at)
const named = new Set(areas.map(({ name }) => name))
const paths = globSync('packages/*/src/**/*.ts', { cwd: root })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => areaNameOf(path) !== undefined)
  .filter((path) =>
    point
      ? path.endsWith(point.path)
      : words.length === 0 ||
        words.some((word) => (named.has(word) ? areaNameOf(path) === word : path.includes(word))),
  )
  .sort()
if (paths.length === 0) {
  const areasKnown = [...named].join(', ')
  refuse(
    `No source file that is tried has ${point?.path ?? words.join(' or ')} in its path. Areas: ${areasKnown}.`,
  )
}

const sources = new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]))
const sourceOf = (path: string): string => sources.get(path) ?? ''
const all = paths.flatMap((path) => mutantsOf(path, sourceOf(path)))
const { tried, leftOut, stale } = withoutEquivalents(all)
if (stale.length > 0) {
  const list = stale
    .map(({ path, within, original }) => `  ${path}, ${within || 'top'}: ${original}`)
    .join('\n')
  refuse(`These entries of scripts/mutation/equivalents fit no mutant; bring them up to date:\n${list}`)
}

const fitting = tried.filter(
  ({ line, operator }) =>
    (point === undefined || line === point.line) && (values.operator ?? operator) === operator,
)
if (fitting.length === 0) refuse('No mutant fits.')
const chosen = count === undefined ? fitting : sampleOf(fitting, count, seed)
const drawn = count === undefined ? '' : `, drawn with --seed ${seed}`
console.log(
  `${chosen.length} of ${fitting.length} mutants${drawn}; ${leftOut.length} equivalent ones left out`,
)

function show(mutant: Mutant): string {
  const { path, line, operator, within } = mutant
  const diff = diffOf(sourceOf(path), mutant).replaceAll(/^/gm, '    ')
  return `${path}:${line}  ${operator}${within && ` in ${within}`}\n${diff}`
}

if (values.list) for (const mutant of chosen) console.log(show(mutant))
else {
  if (values.survey) {
    const packages = new Set(chosen.flatMap(({ path }) => testersOf(path.split('/')[1] ?? '')))
    for (const name of packages) takeSurvey(root, name)
  }
  const memory = new Memory(root)
  const testsOf = reachingTests(root, memory)
  const verdicts = await tryAll(chosen, {
    root,
    workers,
    memory,
    testsOf,
    sourceOf,
    show,
    isVerbose: values.verbose,
  })
  memory.save()
  console.log(summaryOf(verdicts, leftOut))
  const survivors = verdicts.filter(({ kind }) => kind === 'survived')
  process.exitCode = survivors.length > 0 ? 1 : 0
}
