
/**
 * Keeps the process alive until `work` has ended: a run may wait for an event of another process, and such a wait holds
 * no timer or socket that would keep this process alive.
 */
export async function keepAlive<Result>(work: () => Promise<Result>): Promise<Result> {
  const awake = setInterval(() => {}, longMs)
  try {
    return await work()
  } finally {
    clearInterval(awake)
  }
}
