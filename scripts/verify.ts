// Everything that has to hold before a change is done, in one command: `pnpm verify`. Options:
//   --skip NAME           leaves a step out; may be repeated
//   --test-report FILE    counts the tests of a vitest JSON report, too
//   --tally FILE          writes the count as `N passed, N failed`
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { parseArgs, promisify } from 'node:util'

const { values: options } = parseArgs({
  options: {
    skip: { type: 'string', multiple: true, default: [] },
    'test-report': { type: 'string' },
    tally: { type: 'string' },
  },
})

const machineWords = String.raw`(?<![\w.:/@}-])/(?:home|root|tmp|work|Users)/[\w.-]+|\bregistry\.[\w-]+\.\w+|_auth[T]oken`

/** Steps by name, each with what holds once its command has ended well. */
type Steps = Readonly<Record<string, readonly [claim: string, command: string]>>

/** One after the other: quick ones first, so that most mistakes show within seconds, and those that keep all cores busy. */
const steps: Steps = {
  format: ['every file is formatted (pnpm format mends it)', 'oxfmt --check'],
  types: ['sources, tests, type tests and scripts compile', 'tsc -b'],
  lint: ['no rule of the linter is broken: types, arrows, patterns', 'oxlint'],
  api: ['packages export what their api.txt says (pnpm api writes it)', 'node scripts/api.ts --check'],
  links: ['links within the repository lead somewhere', 'remark . llms.txt --frail --quiet'],
  words: ['no file names a machine or a registry', `! git grep -nIP --untracked '${machineWords}'`],
  unused: ['no file, export or dependency is left over', 'knip --no-progress --no-config-hints'],
  tests: ['every test passes', 'vitest run'],
  thorough: ['random programs, processes and Postgres keep their promises', 'vitest run --mode thorough'],
}

/** Two at a time, since each of them keeps one core busy, or waits. The longest come first. */
const pairedSteps: Steps = {
  packages: ['each package is well formed and loads as users get it', 'node scripts/check-packages.ts'],
  engines: [
    'workers on each engine may die, and no effect is lost or repeated',
    'node packages/engines/bench/campaign.ts engines --short --seed 20261129',
  ],
  bench: ['benchmarks of Tallystick come out right, with tiny numbers', 'node bench/main.ts --smoke --own'],
  crashes: [
    'processes and servers may die at any place',
    'node scripts/crashes.ts --points 40 --stops 4 --deaths 6 --seed 20261120',
  ],
  conformance: [
    'the public suite of MCP passes client and server',
    'node packages/tools/test/conformance/conformance.ts',
  ],
  simulation: [
    'every law holds in 300 simulated worlds, and each is exercised',
    // A world in which a store lost its power under a process that stood still is among these.
    'node scripts/simulate.ts --seeds 300 --from 2201 --partly',
  ],
}

/** A hung step is a broken one. */
const timeout = 20 * 60_000
const root = join(import.meta.dirname, '..')
const env = { ...process.env, PATH: [join(root, 'node_modules/.bin'), process.env['PATH']].join(delimiter) }
const folder = mkdtempSync(join(tmpdir(), 'tallystick-verify-'))
const failedSteps: string[] = []
let passed = 0
let failed = 0

/** Counts the tests of vitest's JSON report. One that is missing counts as a failure, and so does a file that did not load. */
function countTests(file: string): void {
  interface Report {
    readonly success: boolean
    readonly numPassedTests: number
    readonly numFailedTests: number
  }
  let report: Report
  try {
    report = JSON.parse(readFileSync(file, 'utf8')) as Report
  } catch {
    failed++
    return
  }
  passed += report.numPassedTests
  failed += report.success ? 0 : Math.max(1, report.numFailedTests)
}

/** Takes steps until there are no more. */
async function play(upcoming: Iterator<[string, Steps[string]]>): Promise<void> {
  for (let next = upcoming.next(); !next.done; next = upcoming.next()) {
    const [name, [claim, command]] = next.value
    if (options.skip.includes(name)) continue
    const isVitest = command.startsWith('vitest')
    const report = join(folder, `${name}.json`)
    const words = isVitest ? ` --reporter=default --reporter=json --outputFile.json='${report}'` : ''
    const started = performance.now()
    const failure = await promisify(execFile)('bash', ['-c', `exec </dev/null\n${command}${words}`], {
      cwd: root,
      env,
      timeout,
      maxBuffer: 2 ** 30,
    }).then(
      () => undefined,
      (error: { readonly stdout: string; readonly stderr: string }) => error,
    )
    const seconds = ((performance.now() - started) / 1000).toFixed(1).padStart(6)
    if (isVitest) countTests(report)
    else if (failure === undefined) passed++
    else failed++
    console.log(`${failure === undefined ? 'ok    ' : 'FAILED'} ${name.padEnd(11)} ${seconds} s  ${claim}`)
    if (failure === undefined) continue
    failedSteps.push(name)
    console.log(`\n$ ${command}\n${failure.stdout}${failure.stderr}`)
  }
}

const unknown = options.skip.filter((name) => !Object.hasOwn({ ...steps, ...pairedSteps }, name))
if (unknown.length > 0) throw new Error(`No step is called ${unknown.join(', ')}.`)
if (options['test-report'] !== undefined) {
  countTests(options['test-report'])
  if (failed > 0) failedSteps.push('the tests before')
}

await play(Object.entries(steps).values())
const pairs = Object.entries(pairedSteps).values()
await Promise.all([play(pairs), play(pairs)])

rmSync(folder, { recursive: true, force: true })
if (options.tally !== undefined) writeFileSync(options.tally, `${passed} passed, ${failed} failed\n`)
console.log(`\n${passed} passed, ${failed} failed.`)
console.log(failedSteps.length === 0 ? 'All steps hold.' : `Failed: ${failedSteps.join(', ')}.`)
process.exitCode = failedSteps.length === 0 ? 0 : 1
