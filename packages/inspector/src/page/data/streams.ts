/**
 * The most streams that all tabs of a browser hold open. It opens six connections to a server of HTTP/1.1, and a request waits
 * until one of them is free.
 */
const maxStreams = 4

/** Calls `use` with whether it may hold a stream open until it ends. If it may not, it can read what is there. */
export async function withStream<Result>(use: (mayStream: boolean) => Promise<Result>): Promise<Result> {
  // Absent where the page comes neither from this machine nor over TLS.
  const locks = navigator.locks as LockManager | undefined
  if (locks === undefined) return await use(true)
  for (let place = 1; place <= maxStreams; place++) {
    const found = await locks.request(`stream ${place}`, { ifAvailable: true }, async (lock) =>
      lock === null ? undefined : { result: await use(true) },
    )
    if (found) return found.result
  }
  return await use(false)
}
