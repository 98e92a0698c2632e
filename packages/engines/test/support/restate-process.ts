import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const repository = join(import.meta.dirname, '../../../..')

/** It takes 225 MB, so that no `pnpm install` brings it. */
const installLine = 'scripts/testing/install-engines.sh'

/** The program of the server; `undefined` if this machine has none, which the test run then says. */
export function findRestate(): string | undefined {
  const name = `restate-server-${process.platform}-${process.arch}`
  const path = join(repository, '.runtimes/node_modules/@restatedev', name, 'bin/restate-server')
  if (existsSync(path)) return path
  const missing = `The tests of the engine on Restate need its server. Install it: ${installLine}`
  if (process.env['TALLYSTICK_ENGINES'] === 'all') throw new Error(missing)
  console.warn(missing)
  return undefined
}

export interface RestateProcess {
  readonly ingress: string
  readonly admin: string
  /** Kills it, as a crash does, and resolves when it is there again, on the same ports with the same data. */
  readonly restart: () => Promise<void>
  readonly end: () => Promise<void>
}

/** Starts a server in a process of its own, which ends with this one. */
export async function startRestate(program: string): Promise<RestateProcess> {
  const script = fileURLToPath(new URL('restate-server.ts', import.meta.url))
  const child = spawn(process.execPath, [script, program], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const [line] = (await once(lines, 'line')) as [string]
  return {
    ...(JSON.parse(line) as Pick<RestateProcess, 'ingress' | 'admin'>),
    async restart() {
      const started = once(lines, 'line')
      child.stdin.write('\n')
      await started
    },
    async end() {
      child.stdin.end()
      await exit
    },
  }
}
