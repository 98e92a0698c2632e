import { spawn } from 'node:child_process'
import { text as textOf } from 'node:stream/consumers'

/** Runs a command to its end, and returns what it printed. Rejects where it fails, or is stopped. */
export async function demand(
  cwd: string,
  [file = '', ...parameters]: readonly string[],
  stop?: AbortSignal,
): Promise<string> {
  stop?.throwIfAborted()
  const child = spawn(file, parameters, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const end = (): void => void child.kill()
  stop?.addEventListener('abort', end)
  try {
    const [printed, errors, status] = await Promise.all([
      textOf(child.stdout),
      textOf(child.stderr),
      new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve)),
    ])
    stop?.throwIfAborted()
    if (status !== 0) throw new Error(`${[file, ...parameters].join(' ')}\n${printed}${errors}`)
    return printed
  } finally {
    stop?.removeEventListener('abort', end)
  }
}

const running = process.env['npm_execpath']

/**
 * How to call the pnpm that runs this script; started without pnpm, the one that the README names.
 * Which of the two it is makes no difference to what the call does.
 */
export const pnpm: readonly [string, ...string[]] =
  running !== undefined && /pnpm(\.exe)?$/.test(running) ? [running] : ['npx', '-y', 'pnpm@12']
