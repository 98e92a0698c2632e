import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** A program that shows text page by page on the terminal of this process. */
export interface Pager {
  /** Waits while the pager is slower. Does nothing after the reader has left the pager. */
  readonly print: (text: string) => Promise<void>
  /** Resolves when its reader has seen enough. */
  readonly close: () => Promise<void>
}

/** `less` ends where all of it fits one screen, shows colours, and leaves what was read on the screen. */
const lessOptions = 'FRX'

/** Starts the pager of the environment, `less` where it names none; `undefined` if it wants none. */
export function openPager(
  environment: NodeJS.ProcessEnv,
  shownText: (text: string) => string,
): Pager | undefined {
  const folders = (environment['PATH'] ?? '').split(delimiter)
  const hasLess = folders.some((folder) => folder !== '' && existsSync(join(folder, 'less')))
  const command = environment['PAGER'] ?? (hasLess ? 'less' : '')
  if (command.trim() === '' || command === 'cat') return undefined
  const child = spawn(command, {
    shell: true,
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { LESS: lessOptions, ...environment },
  })
  // Ctrl-C is for the pager as long as it is there.
  const leave = (): void => {}
  process.on('SIGINT', leave)
  let isOpen = true
  const closed = new Promise<void>((resolve) => {
    const end = (): void => {
      isOpen = false
      process.off('SIGINT', leave)
      resolve()
    }
    child.once('error', end)
    child.once('close', end)
  })
  child.stdin.on('error', () => (isOpen = false))
  return {
    async print(text) {
      if (isOpen && !child.stdin.write(shownText(text))) {
        await Promise.race([once(child.stdin, 'drain').catch(() => undefined), closed])
      }
    },
    async close() {
      child.stdin.end()
      await closed
    },
  }
}
