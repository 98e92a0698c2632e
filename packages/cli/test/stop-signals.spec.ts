import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type InteractiveRunOptions, stopOnSignal } from '../src/drive/interactive-run.ts'

/** What happens at stop signals, without any being sent to the process. */
function stopping(actions: Partial<Pick<InteractiveRunOptions, 'drain' | 'cancel'>> = {}) {
  const said: string[] = []
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never)
  onTestFinished(() => exit.mockRestore())
  const drain = vi.fn<() => Promise<unknown>>().mockRejectedValue(new Error('told in the result'))
  const before = process.listeners('SIGINT').length
  const stop = stopOnSignal({ say: (line: string) => void said.push(line) } as never, { drain, ...actions })
  const receive = (signal: NodeJS.Signals): void => process.listeners(signal).at(-1)?.(signal)
  const listening = (): number => process.listeners('SIGINT').length - before
  return { said, exit, drain, stop, receive, listening }
}

describe('a stop signal', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    '%s brings the run to rest, and the second one ends the process',
    (signal) => {
      const { said, exit, drain, stop, receive, listening } = stopping()
      expect([stop.asked, listening()]).toEqual([false, 1])
      receive(signal)
      expect([stop.asked, drain.mock.calls.length, exit.mock.calls]).toEqual([true, 1, []])
      expect(said).toEqual([expect.stringMatching(/^\nStopping: /)])
      receive(signal)
      expect(exit.mock.calls).toEqual([[130]])
      stop.off()
      expect(listening()).toBe(0)
    },
  )

  it('of Ctrl-C ends a run that is to be cancelled, and others bring it to rest', () => {
    const cancel = vi.fn<() => Promise<unknown>>().mockResolvedValue(undefined)
    for (const [signal, cancelled] of [
      ['SIGINT', true],
      ['SIGTERM', false],
    ] as const) {
      const { said, drain, stop, receive } = stopping({ cancel })
      receive(signal)
      expect(said[0]).toMatch(cancelled ? /^\nCancelling: / : /^\nStopping: /)
      expect([cancel.mock.calls.length, drain.mock.calls.length]).toEqual([1, cancelled ? 0 : 1])
      stop.off()
    }
  })
})
