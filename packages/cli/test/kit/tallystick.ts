import { spawn } from 'node:child_process'
import { join } from 'node:path'

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
  const [stdout, stderr] = [child.stdout, child.stderr].map((stream) => stream.setEncoding('utf8').toArray())
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return { code, stdout: ((await stdout) ?? []).join(''), stderr: ((await stderr) ?? []).join('') }
}

/** What the command printed as JSON. */
export function json(text: string): unknown {
  return JSON.parse(text)
}
