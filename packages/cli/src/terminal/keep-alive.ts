/** The longest that a timer waits, in milliseconds. */
const longMs = 2 ** 31 - 1

/**
 * Keeps the process alive until `work` has ended: a run may wait for what keeps no process alive by itself, such as a
 * word from another one.
 */
export async function keepAlive<Result>(work: () => Promise<Result>): Promise<Result> {
  const awake = setInterval(() => {}, longMs)
  try {
    return await work()
  } finally {
    clearInterval(awake)
  }
}
