import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { type Step, stepTimeoutMs } from './step.ts'
import { countTests, type Tally } from './tally.ts'

const root = join(import.meta.dirname, '../..')

/** How a step went. */
export interface Verdict {
  readonly step: Step
  readonly passed: boolean
  readonly seconds: number
  readonly output: string
  /** Its tests where the step counts them; otherwise the step itself. */
  readonly tally: Tally
}

/** Runs a step with the tools of this repository first on the path. Never rejects: a tool that is not there failed. */
export async function runStep(step: Step): Promise<Verdict> {
  if (!step.countsTests) {
    const verdict = await run(step, [])
    return { ...verdict, tally: { passed: Number(verdict.passed), failed: Number(!verdict.passed) } }
  }
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-verify-'))
  const report = join(folder, 'tests.json')
  try {
    const verdict = await run(step, ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`])
    return { ...verdict, tally: tallyIn(report, verdict.passed) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The tests in the report of a step. A step that failed counts at least one failure, also where it wrote no report. */
function tallyIn(report: string, passed: boolean): Tally {
  let tally: Tally
  try {
    tally = countTests(readFileSync(report, 'utf8'))
  } catch {
    return { passed: 0, failed: 1 }
  }
  return passed ? tally : { ...tally, failed: Math.max(1, tally.failed) }
}

function run(step: Step, more: readonly string[]): Promise<Omit<Verdict, 'tally'>> {
  const started = performance.now()
  const [file, ...own] = step.command
  const parameters = [...own, ...more]
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
