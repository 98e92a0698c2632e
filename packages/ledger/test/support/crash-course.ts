import type { Cross } from './crash-boundaries.ts'
import { watchCommits } from './crash-commits.ts'
import { clear, prepare, see, siteOf, type Ground } from './crash-site.ts'
import { openStore } from './crash-store.ts'

/** How many boundaries a process crosses when it is not cut off, from a step of a scenario on. */
export interface Course {
  readonly scenario: string
  readonly fromStep: number
  readonly boundaries: number
}

/** Tells of every boundary that this process crosses while `work` is under way. One at a time. */
export async function watching<T>(cross: Cross, work: (cross: Cross) => Promise<T>): Promise<T> {
  const end = watchCommits(cross)
  try {
    return await work(cross)
  } finally {
    end()
  }
}

/** Counts what a process would cross, by going that way in this one. */
export async function courseOf(ground: Ground, scenario: string, fromStep = 0): Promise<Course> {
  const site = siteOf(ground, scenario)
  await prepare(site, fromStep)
  let boundaries = 0
  const strays = await watching(
    () => boundaries++,
    async (cross) => {
      const ledger = openStore(site.store)
      const found = await see(site, ledger, { fromStep, cross })
      await ledger.close()
      return found
    },
  )
  if (strays.length > 0) throw new Error(`${scenario} does not even end by itself: ${strays.join('; ')}`)
  clear(site)
  return { scenario, fromStep, boundaries }
}
