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
        // A browser shows it as an error that nobody caught. Elsewhere an uncaught one would end the process.
        const { reportError } = globalThis as { readonly reportError?: (error: unknown) => void }
        reportError?.(new Error('The run could not be stopped.', { cause: error }))
        return
      }
      await new Promise((resolve) => setTimeout(resolve, retryMs * attempt))
    }
  }
}
