import { spawn } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { type Step, stepTimeoutMs } from './step.ts'

const root = join(import.meta.dirname, '../..')

/** How a step went. */
export interface Verdict {
  readonly step: Step
  readonly passed: boolean
  readonly seconds: number
  readonly output: string
}

/** Runs a step with the tools of this repository first on the path. Never rejects: a tool that is not there failed. */
export function runStep(step: Step): Promise<Verdict> {
  const started = performance.now()
  const [file, ...parameters] = step.command
  const child = spawn(file, parameters, {
    cwd: root,
    env: { ...process.env, PATH: [join(root, 'node_modules/.bin'), process.env['PATH']].join(delimiter) },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: stepTimeoutMs,
  })
  let output = ''
  const collect = (chunk: Buffer): void => {
    output += chunk.toString()
  }
  child.stdout.on('data', collect)
  child.stderr.on('data', collect)
  return new Promise((resolve) => {
    const end = (passed: boolean, last: string): void =>
      resolve({ step, passed, seconds: (performance.now() - started) / 1000, output: output + last })
    child.once('error', (error) => end(false, `${error.message}\n`))
    child.once('close', (status, signal) => end(status === 0, signal === null ? '' : `Ended by ${signal}.\n`))
  })
}
