import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** Starts a process that brings projections up to date again and again; resolves when it has done so once. */
export async function refreshingProcess(
  ...args: readonly string[]
): Promise<{ readonly end: () => Promise<number> }> {
  const script = fileURLToPath(new URL('projection-child.ts', import.meta.url))
  const child = spawn(process.execPath, [script, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const { value } = await lines.next()
  if (value !== 'ready') throw new Error('The process has ended before it was ready.')
  return {
    /** Lets it end; answers how often it has looked. */
    async end() {
      child.stdin.end()
      const said = await lines.next()
      if (said.done) throw new Error('The process has ended with an error.')
      return Number(said.value)
    },
  }
}
