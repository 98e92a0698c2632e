import { fork } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

/** What a process is asked: to start a run, to drive those that are due, to answer every model call. */
export type Asked = { readonly start: string } | { readonly work: true } | { readonly answer: true }

/** What it tells. */
export type Told =
  | { readonly ready: true }
  | { readonly started: string }
  | { readonly working: true }
  | { readonly called: string }
  | { readonly idle: true }
  | { readonly fault: string }

/** A process of its own that drives runs. */
export interface PollingProcess {
  /** The inputs of the runs for which it has called its model, in order. */
  readonly calls: readonly string[]
  readonly faults: readonly string[]
  /** Starts a run, and resolves when its model has been called. */
  start(input: string): Promise<void>
  /** Drives the runs that are due, from now on. */
  work(): Promise<void>
  /** Resolves when it has called its model so often. */
  called(times: number): Promise<void>
  /** Answers every model call, and resolves when it drives no run any more. */
  answer(): Promise<void>
  /** Kills it at once, as a crash does. */
  kill(): Promise<void>
}

/** Starts a process, which does not outlive the test. */
export async function startPollingProcess(...args: readonly string[]): Promise<PollingProcess> {
  const child = fork(new URL('polling-child.ts', import.meta.url), [...args])
  onTestFinished(() => void child.kill('SIGKILL'))
  const calls: string[] = []
  const faults: string[] = []
  const hearers = new Set<(told: Told) => void>()
  child.on('message', (told: Told) => {
    if ('called' in told) calls.push(told.called)
    if ('fault' in told) faults.push(told.fault)
    for (const hear of hearers) hear(told)
  })
  const heard = (isIt: (told: Told) => boolean): Promise<Told> =>
    new Promise((resolve, reject) => {
      const end = (code: number | null): void => reject(new Error(`A polling process ended (${code}).`))
      const hear = (told: Told): void => {
        if (!isIt(told)) return
        hearers.delete(hear)
        child.off('exit', end)
        resolve(told)
      }
      hearers.add(hear)
      child.on('exit', end)
    })
  const ask = async (asked: Asked, field: string): Promise<Told> => {
    const answer = heard((told) => field in told)
    child.send(asked)
    return await answer
  }
  const called = async (times: number): Promise<void> => {
    if (calls.length < times) await heard(() => calls.length >= times)
  }
  await heard((told) => 'ready' in told)
  return {
    calls,
    faults,
    called,
    async start(input) {
      const times = calls.length + 1
      await ask({ start: input }, 'started')
      await called(times)
    },
    work: async () => void (await ask({ work: true }, 'working')),
    answer: async () => void (await ask({ answer: true }, 'idle')),
    async kill() {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}
