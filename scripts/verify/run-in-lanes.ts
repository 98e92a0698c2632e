/** A step, and the names of those that it waits for. */
interface Waiting {
  readonly name: string
  readonly after?: readonly string[]
}

/**
 * Runs steps in their order, as many at a time as there are lanes. A step that has to wait for others lets later steps
 * go first; it does not wait for a step that is left out.
 */
export async function runInLanes<Step extends Waiting>(
  steps: readonly Step[],
  lanes: number,
  run: (step: Step) => Promise<void>,
): Promise<void> {
  const left = [...steps]
  const unfinished = new Set(steps.map(({ name }) => name))
  const running = new Set<Promise<void>>()
  const takeNext = (): Step | undefined => {
    const index = left.findIndex(({ after = [] }) => !after.some((name) => unfinished.has(name)))
    return index < 0 ? undefined : left.splice(index, 1)[0]
  }
  while (left.length > 0 || running.size > 0) {
    const step = running.size < lanes ? takeNext() : undefined
    if (step === undefined) {
      if (running.size === 0)
        throw new Error(`Steps wait for each other: ${left.map(({ name }) => name).join(', ')}.`)
      await Promise.race(running)
      continue
    }
    const ending = run(step).finally(() => {
      unfinished.delete(step.name)
      running.delete(ending)
    })
    running.add(ending)
  }
}
