/** The most attempts of a stop, and the wait between them, in milliseconds. */
const [tries, retryMs] = [5, 500]

export interface StopOptions {
  /**
   * Called if a run could not be stopped, since the server refused that or could not be reached: the run goes on, and its user
   * has to be told. Default: the error is printed to the console.
   */
  readonly onStopError?: (error: Error) => void
}

/**
 * Stops the run of a conversation. A lost connection must not turn Stop into nothing, so a request that fails is sent again; one
 * that the server refuses is not.
 */
export async function stopRun(
  send: (init: RequestInit) => Promise<Response>,
  runId: string | undefined,
  { onStopError = printError }: StopOptions,
): Promise<void> {
  const init = { method: 'POST', body: JSON.stringify({ ...(runId !== undefined && { runId }) }) }
  for (let attempt = 1; ; attempt++) {
    let cause: unknown
    let isRefused = false
    try {
      const response = await send(init)
      if (response.ok) return
      cause = new Error(await response.text())
      isRefused = response.status < 500 && response.status !== 408 && response.status !== 429
    } catch (error) {
      cause = error
    }
    if (isRefused || attempt === tries) {
      return onStopError(new Error('The run could not be stopped, and continues.', { cause }))
    }
    await new Promise((resolve) => setTimeout(resolve, retryMs * attempt))
  }
}

/** `reportError` would end a process of Deno or Bun, and is absent in Node. */
function printError(error: Error): void {
  globalThis.console.error(error)
}
