// Takes a ledger file to its extremes and prints what that took: `pnpm extremes`. Options:
//   --bytes N    of the one tool result that goes through a whole run; 100000000 where not given
//   --runs N     in one file, against a file with a hundredth of them; 1000000 where not given
import { parseArgs } from 'node:util'
import { takeLargeResult } from '../test/support/bad-input-large.ts'
import { askManyRuns } from '../test/support/bad-input-many.ts'

const { values } = parseArgs({
  options: {
    bytes: { type: 'string', default: '100000000' },
    runs: { type: 'string', default: '1000000' },
  },
})

const bytes = Number(values.bytes)
if (bytes > 0) console.log(`A tool result of ${bytes.toLocaleString('en')} bytes:`)
if (bytes > 0) {
  await takeLargeResult(bytes, ({ step, ms, maxMebibytes }) => {
    const time = `${ms.toLocaleString('en')} ms`.padStart(11)
    console.log(`${step.padEnd(32)} ${time}   at most ${maxMebibytes.toLocaleString('en')} MiB`)
  })
}

const runs = Number(values.runs)
if (runs > 0) {
  const few = await askManyRuns(Math.max(100, Math.ceil(runs / 100)))
  const many = await askManyRuns(runs)
  const sizes = [few, many].map((each) => `${each.runs.toLocaleString('en')} runs`.padStart(16)).join(' ')
  console.log(`\n${'Milliseconds, opening included:'.padEnd(32)} ${sizes}`)
  for (const [what, ms] of Object.entries(many.answersMs)) {
    const both = [few.answersMs[what] ?? 0, ms].map((each) => each.toFixed(1).padStart(16)).join(' ')
    console.log(`${what.padEnd(32)} ${both}`)
  }
  console.log(
    `The file of ${many.runs.toLocaleString('en')} runs has ${Math.round(many.fileBytes / 2 ** 20)} MiB.`,
  )
}
