/** What a piece of work took. */
export interface Took {
  readonly wallMs: number
  readonly cpuMs: number
}

/** Does the work, and says what it took of the clock and of all threads of this process. */
export async function metered<T>(work: () => T | Promise<T>): Promise<Took & { readonly value: T }> {
  const cpu = process.cpuUsage()
  const begun = performance.now()
  const value = await work()
  const wallMs = performance.now() - begun
  const { user, system } = process.cpuUsage(cpu)
  return { wallMs, cpuMs: (user + system) / 1000, value }
}

/**
 * Does work that is too short to be measured alone several times, one after another, until the time is up. Says what all of it took,
 * and returns what each came to.
 */
export function meteredTimes<T>(
  work: () => Promise<T>,
  { times, limitMs }: { readonly times: number; readonly limitMs: number },
): Promise<Took & { readonly value: readonly T[] }> {
  return metered(async () => {
    const endsAt = performance.now() + limitMs
    const values = [await work()]
    while (values.length < times && performance.now() < endsAt) values.push(await work())
    return values
  })
}

/** The memory that this process holds now, in MiB. */
export function residentMiB(): number {
  return process.memoryUsage.rss() / 2 ** 20
}

/** The most memory that this process has held, in MiB. */
export function peakMiB(): number {
  return process.resourceUsage().maxRSS / 2 ** 10
}
