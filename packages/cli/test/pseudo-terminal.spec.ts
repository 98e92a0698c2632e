import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { spawnAtTerminal } from './kit/whole-output.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

it('a program at a terminal has its last output read, however late its reader is', async () => {
  const program = spawnAtTerminal('/bin/sh', ['-c', 'echo the last words'], {})
  let output = ''
  program.pause()
  program.onData((text) => (output += text))
  const ended = new Promise<number>((resolve) => program.onExit(({ exitCode }) => resolve(exitCode)))
  // node-pty has heard of the end, and its time to close the terminal is over.
  while (vi.getTimerCount() === 0) await new Promise(setImmediate)
  vi.runAllTimers()
  program.resume()
  expect([await ended, output]).toEqual([0, 'the last words\r\n'])
})
