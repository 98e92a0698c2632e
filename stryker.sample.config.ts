// `MUTANTS=60 SEED=1 pnpm mutate stryker.sample.config.ts`: so many mutants of the machine and the runtime, drawn by a seed, asked
// of the suites of the testkit alone. Stryker takes ranges of files, so what is within a mutant that was drawn is in the sample, too.
import { globSync, readFileSync } from 'node:fs'
import { type File, Instrumenter } from '@stryker-mutator/instrumenter'
import { seededRandom } from '@tallystick/testkit'

const never = (): false => false
const [count, seed] = [Number(process.env['MUTANTS']), Number(process.env['SEED'] ?? 1)]
const silent = {
  ...{ isTraceEnabled: never, isDebugEnabled: never, isInfoEnabled: never, isWarnEnabled: never },
  ...{ isErrorEnabled: never, isFatalEnabled: never, trace: never, debug: never, info: never },
  ...{ warn: never, error: never, fatal: never },
}
const files = globSync('packages/core/src/{machine,runtime}/**/*.ts')
  .sort()
  .map((name): File => ({ name, mutate: true, content: readFileSync(name, 'utf8') }))
const options = { plugins: null, excludedMutations: [], ignorers: [], noHeader: true }
const { mutants } = await new Instrumenter(silent).instrument(files, options)

type Mutant = (typeof mutants)[number]

/** A place that can be compared as a number. */
const toPlace = ({ line, column }: { readonly line: number; readonly column: number }): number =>
  line * 10_000 + column
const isWithin = (inner: Mutant, outer: Mutant): boolean =>
  inner.fileName === outer.fileName &&
  toPlace(inner.location.start) >= toPlace(outer.location.start) &&
  toPlace(inner.location.end) <= toPlace(outer.location.end)

const random = seededRandom(seed)
const drawn = mutants.map((mutant) => ({ mutant, order: random() })).sort((a, b) => a.order - b.order)
const sample = new Set<Mutant>()
const ranges = new Set<string>()
for (const { mutant } of drawn) {
  const { fileName, location } = mutant
  const within = mutants.filter((each) => isWithin(each, mutant))
  // A whole function would be much of the sample.
  if (within.length > 5 || sample.has(mutant)) continue
  for (const each of within) sample.add(each)
  const { start, end } = location
  ranges.add(`${fileName}:${start.line + 1}:${start.column}-${end.line + 1}:${end.column}`)
  if (sample.size >= count) break
}
console.log(`${sample.size} of ${mutants.length} mutants, drawn with the seed ${seed}`)

export default {
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  coverageAnalysis: 'perTest',
  inPlace: true,
  concurrency: 2,
  mutate: [...ranges],
  reporters: ['clear-text', 'progress-append-only'],
  ignoreStatic: true,
  vitest: { configFile: 'vitest.mutation.config.ts' },
}
