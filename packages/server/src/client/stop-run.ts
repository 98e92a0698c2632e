/** How often a stop is sent, and how long to wait before it is sent again, in milliseconds. */
const [tries, retryMs] = [5, 500]

/** Stops the run of a conversation. A lost connection must not turn Stop into nothing, so a request that fails is sent again. */
export async function stopRun(
  send: (init: RequestInit) => Promise<Response>,
  runId: string | undefined,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await send({ method: 'POST', body: JSON.stringify(runId === undefined ? {} : { runId }) })
      return
    } catch (error) {
      if (attempt === tries) {
        // The page shows it as any error that nobody caught.
        queueMicrotask(() => {
          throw new Error('The run could not be stopped.', { cause: error })
        })
        return
      }
      await new Promise((resolve) => setTimeout(resolve, retryMs * attempt))
    }
  }
}
