import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { runCommandLine } from '@tallystick/cli'

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')

/** How the command ended. */
export interface Ending {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the command in a process of its own, without a terminal. */
export async function tallystick(...words: readonly string[]): Promise<Ending> {
  const { FORCE_COLOR: _color, npm_lifecycle_event: _script, ...environment } = process.env
  const child = spawn(process.execPath, [main, ...words], {
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  const [stdout, stderr] = await output
  return { code, stdout, stderr }
}

/** Runs the command in this process, as `main.ts` does. */
export async function tallystickHere(...words: readonly string[]): Promise<Ending> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const host = { env: {}, cwd: () => tmpdir(), stdin: {}, stdout, stderr }
  const code = await runCommandLine(words, host)
  stdout.end()
  stderr.end()
  return { code, stdout: await text(stdout), stderr: await text(stderr) }
}

/** What the command printed as JSON. */
export function json(text: string): unknown {
  return JSON.parse(text)
}
