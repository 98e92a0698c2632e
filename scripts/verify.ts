// Everything that has to hold before a change is done, in one command: `pnpm verify`. Options:
//   --skip NAME           leaves a step out; may be repeated
//   --test-report FILE    adds the tests of a vitest JSON report to the count
//   --tally FILE          writes the count as `N passed, N failed`
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { runStep, type Verdict } from './verify/run-step.ts'
import { runInLanes } from './verify/run-in-lanes.ts'
import { lanes, steps } from './verify/step.ts'
import { addTallies, countTests, type Tally } from './verify/tally.ts'

const { values: options } = parseArgs({
  options: {
    skip: { type: 'string', multiple: true, default: [] },
    'test-report': { type: 'string' },
    tally: { type: 'string' },
  },
})

function show({ step, passed, seconds, output, tally }: Verdict): void {
  const mark = passed ? 'ok    ' : 'FAILED'
  const count = step.countsTests ? ` (${tally.passed} passed, ${tally.failed} failed)` : ''
  console.log(`${mark} ${step.name.padEnd(11)} ${seconds.toFixed(1).padStart(6)} s  ${step.claim}${count}`)
  if (!passed) console.log(`\n$ ${step.command.join(' ')}\n${output.trimEnd()}\n`)
}

/** The tests that were run before; a report that is missing counts as one failure. */
function earlierTests(): Tally {
  const path = options['test-report']
  if (path === undefined) return { passed: 0, failed: 0 }
  return existsSync(path) ? countTests(readFileSync(path, 'utf8')) : { passed: 0, failed: 1 }
}

const unknown = options.skip.filter((name) => !steps.some((step) => step.name === name))
if (unknown.length > 0) throw new Error(`No step is called ${unknown.join(', ')}.`)

const verdicts: Verdict[] = []
const chosen = steps.filter(({ name }) => !options.skip.includes(name))
await runInLanes(chosen, lanes, async (step) => {
  const verdict = await runStep(step)
  verdicts.push(verdict)
  show(verdict)
})

const failed = verdicts.filter(({ passed }) => !passed).map(({ step }) => step.name)
const total = verdicts.reduce((sum, { tally }) => addTallies(sum, tally), earlierTests())
if (options.tally !== undefined)
  writeFileSync(options.tally, `${total.passed} passed, ${total.failed} failed\n`)
console.log(`\n${total.passed} passed, ${total.failed} failed.`)
console.log(failed.length === 0 ? 'All steps hold.' : `Failed: ${failed.join(', ')}.`)
process.exitCode = failed.length === 0 ? 0 : 1
