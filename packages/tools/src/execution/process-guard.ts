import { type ChildProcess, spawn } from 'node:child_process'
import { markVariable } from './left-group.ts'

/**
 * Ends groups of processes when this process ends, however it ends: `kill -9` included. A shell holds the other end of a
 * pipe, and ends the groups that it got when the pipe closes.
 */
export interface ProcessGuard {
  /** Watches over the group of this process from now on, and over what has left it with the mark in its environment. */
  add(groupId: number, mark?: string): void
  /** The group is gone. */
  remove(groupId: number): void
  /** Ends the guard itself; resolves when its process is gone. */
  close(): Promise<void>
}

const script = `
groups=''
marks=''
while read -r what group mark; do
  if [ "$what" = '+' ]; then groups="$groups $group"; marks="$marks $mark"; continue; fi
  rest=''
  for each in $groups; do [ "$each" = "$group" ] || rest="$rest $each"; done
  groups=$rest
done
[ -z "$groups" ] && exit 0
for each in $groups; do kill -s TERM -- "-$each"; done
sleep 1
for each in $groups; do kill -s KILL -- "-$each"; done
for mark in $marks; do
  for each in /proc/[0-9]*; do
    grep -qs "${markVariable}=$mark" "$each/environ" && kill -s KILL "\${each#/proc/}"
  done
done
`

/** Starts its process with the first group. On Windows, which has no groups, it does nothing. */
export function processGuard(): ProcessGuard {
  let shell: ChildProcess | undefined
  let gone: Promise<void> | undefined
  const send = (line: string): void => {
    if (process.platform === 'win32') return
    if (shell === undefined) {
      // In a group of its own: an interrupt from the keyboard must not reach it.
      const started = spawn('/bin/sh', ['-c', script], {
        stdio: ['pipe', 'ignore', 'ignore'],
        detached: true,
        env: { PATH: '/usr/bin:/bin' },
        cwd: '/',
      })
      gone = new Promise((resolve) => {
        started.once('exit', () => resolve())
        // Without a shell nothing guards; servers that read their input end with their host all the same.
        started.once('error', () => resolve())
      })
      started.stdin.on('error', () => {})
      started.unref()
      Reflect.get(started.stdin, 'unref')?.call(started.stdin)
      shell = started
    }
    shell.stdin?.write(`${line}\n`)
  }
  return {
    add: (groupId, mark = '') => send(`+ ${groupId} ${mark}`),
    remove: (groupId) => send(`- ${groupId}`),
    async close() {
      if (shell === undefined) return
      shell.ref()
      shell.stdin?.end()
      await gone
    },
  }
}
