// Loaded in front of each test file of a long run (`vitest.config.ts`): tells the seed of each property before its first
// try, so that a run that does not end can be run again, and how often it was tried.
import * as fc from 'fast-check'

const given = process.env['TALLYSTICK_SEED']

fc.configureGlobal({
  /** fast-check asks once for each property. */
  get seed(): number {
    const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given)
    console.log(`seed ${seed}; again with TALLYSTICK_SEED=${seed}`)
    return seed
  },
  reporter: (details) => {
    if (details.failed) throw new Error(fc.defaultReportMessage(details), { cause: details.errorInstance })
    console.log(`seed ${details.seed}: ${details.numRuns} tries passed`)
  },
})
