import { type ChildProcess, spawn } from 'node:child_process'

/** Ends a group of processes when this process is gone, however it ended. */
export interface GroupGuard {
  /** The group has ended. Resolves when the guard is gone too. */
  dismiss(): Promise<void>
}

/** The end of its input without a word means that the process that writes it is gone. */
const script = 'read -r word; [ "$word" = ended ] || kill -s KILL -- "-$1"'

/** Watches over a group of processes from now on: a shell, in a group of its own, holds the other end of a pipe. */
export function groupGuard(groupId: number): GroupGuard {
  let shell: ChildProcess | undefined
  const gone = new Promise<void>((resolve) => {
    shell = spawn('/bin/sh', ['-c', script, 'guard', String(groupId)], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
      env: { PATH: '/usr/bin:/bin', NODE_V8_COVERAGE: undefined },
      cwd: '/',
    })
    shell.once('exit', () => resolve())
    // Without a shell nothing guards; the end of the call ends the group all the same.
    shell.once('error', () => resolve())
    shell.stdin?.on('error', () => {})
  })
  return {
    async dismiss() {
      shell?.stdin?.end('ended\n')
      await gone
    },
  }
}
