import { afterAll, afterEach, beforeAll, vi, type MockInstance } from 'vitest'

// Files share a process: what is watched here is left alone again after the last test of the file.

/** Fails each test of the file in which something was written to the console: clients write payloads there. */
export function forbidConsole(): void {
  let spies: readonly MockInstance[] = []
  beforeAll(() => {
    spies = (['log', 'warn', 'error'] as const).map((name) => vi.spyOn(console, name))
  })
  afterEach(() => {
    const written = spies.flatMap((spy) => spy.mock.calls.splice(0))
    if (written.length > 0) throw new Error(`Written to the console: ${JSON.stringify(written)}`)
  })
  afterAll(() => spies.forEach((spy) => spy.mockRestore()))
}

/** Fails each test of the file that leaves an unhandled rejection. */
export function forbidUnhandledRejections(): void {
  const reasons: unknown[] = []
  const keep = (reason: unknown): void => void reasons.push(reason)
  beforeAll(() => void process.on('unhandledRejection', keep))
  afterEach(async () => {
    // Node reports a rejection that has no handler in the turn after it happened.
    await new Promise((resolve) => setImmediate(resolve))
    const left = reasons.splice(0)
    if (left.length > 0) throw new Error('A rejection was left unhandled.', { cause: left[0] })
  })
  afterAll(() => void process.off('unhandledRejection', keep))
}
