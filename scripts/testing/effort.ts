import './seed.ts'

/** The thoroughness of a test run: `pnpm test` is quick, `pnpm test:thorough` uses full numbers. */
export type Effort = 'quick' | 'thorough'

/** The effort of this run, as `vitest.config.ts` sets it. */
const current: Effort = process.env['TALLYSTICK_EFFORT'] === 'thorough' ? 'thorough' : 'quick'

/** Returns the choice for the effort of this run. A test file that asks for it runs in the thorough run as well. */
export function effort<Choice>(choices: Readonly<Record<Effort, Choice>>): Choice {
  return choices[current]
}

/** `count` tries in full: a campaign, with TALLYSTICK_RUNS=300. */
const fullRuns = 300

/**
 * Returns how often a property is tried: a third of `count` in a thorough run, fewer in a quick one, and in proportion to
 * TALLYSTICK_RUNS where that is set (300 stands for `count`).
 */
export function tries(count: number): number {
  const runs = Number(process.env['TALLYSTICK_RUNS'] ?? effort({ quick: 20, thorough: 100 }))
  return Math.ceil((count * runs) / fullRuns)
}

/**
 * Ends the job of the try before, for `beforeEach` of a property whose runs live on a manual clock: all of their tries
 * are one job of microtasks, and a `WeakRef` that was read keeps its object until the job ends.
 */
export function newTask(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}
