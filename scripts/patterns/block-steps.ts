import { Session } from 'node:inspector/promises'

/** Counts how often each block of code runs, as V8 counts it for coverage. The same on every machine, unlike time. */
export interface BlockCounter {
  /** Blocks of our own sources that ran in each work, one after the other. */
  stepsOf(works: readonly (() => void)[]): Promise<readonly number[]>
  stop(): void
}

/** Starts counting in this thread. */
export async function blockCounter(): Promise<BlockCounter> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  const taken = async (): Promise<number> => {
    const { result } = await session.post('Profiler.takePreciseCoverage')
    const counts = result
      .filter(({ url }) => /\/packages\/\w+\/src\//.test(url))
      .flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges.map(({ count }) => count)))
    return counts.reduce((sum, count) => sum + count, 0)
  }
  return {
    async stepsOf(works) {
      const steps: number[] = []
      // Each count begins where the one before ended. To take one costs more than most work.
      await taken()
      for (const work of works) {
        work()
        steps.push(await taken())
      }
      return steps
    },
    stop: () => session.disconnect(),
  }
}
