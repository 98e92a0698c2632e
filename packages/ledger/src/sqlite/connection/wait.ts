/** Resolves after a time in milliseconds, by the timer of the process that a test can advance. */
export function wait(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms))
}
