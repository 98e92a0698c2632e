import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Clock } from '@tallystick/core'

/** The clock of a built-in tool that keeps a time limit itself. */
export type Timers = Pick<Clock, 'schedule'>

/**
 * Calls `exceed` after this time, once what has arrived until then was read: in a host that was busy the timer is due before
 * the message that says that all is well. Returns what cancels it.
 */
export function scheduleLimit(timers: Timers, limitMs: number, exceed: () => void): () => void {
  let look: NodeJS.Immediate | undefined
  const cancel = timers.schedule(limitMs, () => (look = setImmediate(exceed)))
  return () => {
    cancel()
    clearImmediate(look)
  }
}

/** The host's timers. */
export const hostTimers: Timers = {
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs)
    return () => clearTimeout(timer)
  },
}

/** The host's timers, which keep no process alive. */
export const unheldTimers: Timers = {
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** The ends of the output of a process, by which the processes are known that it handed them on to. */
export function readOutputEnds(processId: number | undefined): ReadonlySet<string> {
  const ends = [1, 2].flatMap((descriptor) => {
    const end = readLink(`/proc/${processId}/fd/${descriptor}`)
    return /^(?:socket|pipe):/.test(end) ? [end] : []
  })
  return new Set(ends)
}

/** Ends processes that have left the group of a program and still hold its output. Linux alone tells which these are. */
export function endHolders(ends: ReadonlySet<string>): void {
  endProcesses((name) =>
    readNames(`/proc/${name}/fd`).some((fd) => ends.has(readLink(`/proc/${name}/fd/${fd}`))),
  )
}

/** The variable of its environment by which a process is known that has left the group of the one that started it. */
export const markVariable = 'TALLYSTICK_STARTED_BY'

/** How often processes with a mark are sought: one may start another while it is being ended. */
const maxSearches = 10

/** Ends processes that were started with a mark in their environment, whatever group they are in; on Linux alone. */
export function endMarked(mark: string): void {
  const variable = `${markVariable}=${mark}\0`
  for (let search = 0; search < maxSearches; search++) {
    const isMarked = (name: string): boolean =>
      readOr(() => readFileSync(`/proc/${name}/environ`, 'latin1'), '').includes(variable)
    if (endProcesses(isMarked) === 0) return
  }
}

/** Ends the processes whose folder in `/proc` is one of these, and returns how many it ended. */
function endProcesses(isMeant: (name: string) => boolean): number {
  let ended = 0
  for (const name of readNames('/proc')) {
    const processId = Number(name)
    if (!Number.isInteger(processId) || processId === process.pid || !isMeant(name)) continue
    try {
      process.kill(processId, 'SIGKILL')
      ended++
    } catch {
      // It has ended, or belongs to another user.
    }
  }
  return ended
}

/** Reads a fact about a process; returns `instead` if the process has ended or belongs to another user. */
function readOr<Value>(read: () => Value, instead: Value): Value {
  try {
    return read()
  } catch {
    return instead
  }
}

/** Returns where a link leads; an empty text if the link cannot be read. */
function readLink(path: string): string {
  return readOr(() => readlinkSync(path), '')
}

function readNames(folder: string): readonly string[] {
  return readOr(() => readdirSync(folder), [])
}

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
export function startProcessGuard(): ProcessGuard {
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

/**
 * A server of Node in which no request ends the process: one that asks for no URL is answered 400, and one whose answer
 * throws or rejects 500. Without this, an exception in a listener of Node ends the process.
 */
export function createHttpServer(
  answer: (request: IncomingMessage, response: ServerResponse, url: URL) => unknown,
): Server {
  const server = createServer((request, response) => {
    response.on('error', () => {})
    // A target such as `//` begins with a slash, and would be read as the name of a host if it were resolved.
    const { url: target = '/' } = request
    const url = URL.parse(target.startsWith('/') ? `http://localhost${target}` : target)
    if (url === null) return void response.writeHead(400, { connection: 'close' }).end()
    const answered = async (): Promise<unknown> => await answer(request, response, url)
    answered().catch(() => {
      if (response.headersSent) response.destroy()
      else response.writeHead(500, { connection: 'close' }).end()
    })
  })
  // A connection that cannot be accepted, since the process has too many files open, is reported here.
  server.once('listening', () => server.on('error', () => {}))
  return server
}
