import * as fc from 'fast-check'

const given = process.env['TALLYSTICK_SEED']

/**
 * The seed of the random tests of this run. It is the same in every run of a commit, so that a run that passed passes
 * again; TALLYSTICK_SEED gives another, and `random` draws one.
 */
export const testSeed: number =
  given === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(given ?? '20260101')
if (!Number.isSafeInteger(testSeed)) {
  throw new Error(`TALLYSTICK_SEED is ${given}; expected a whole number, or random.`)
}

/** True if each property prints its seed before its first try, so that a run that does not end can be repeated. */
const printsSeeds = given !== undefined || process.env['TALLYSTICK_RUNS'] !== undefined

/** Prints without the console, which some tests require to stay empty. */
function print(line: string): void {
  process.stderr.write(`${line}\n`)
}

fc.configureGlobal({
  /** fast-check reads it once for each property. */
  get seed(): number {
    if (printsSeeds) print(`seed ${testSeed}; again with TALLYSTICK_SEED=${testSeed}`)
    return testSeed
  },
  ...(printsSeeds && {
    reporter: (details) => {
      if (details.failed) throw new Error(fc.defaultReportMessage(details), { cause: details.errorInstance })
      print(`seed ${details.seed}: ${details.numRuns} tries passed`)
    },
  }),
})
