import type { TextDigest } from './digest.ts'

/** The parts of Node, Bun and Deno that tell one process from another. */
interface System {
  readonly pid: number
  readonly platform: string
  kill(pid: number, signal: 0): unknown
  getBuiltinModule(name: string): unknown
}

interface Files {
  readonly readFileSync: (path: string, encoding: 'utf8') => string
  readonly readlinkSync: (path: string) => string
}

interface Programs {
  readonly execFileSync: (file: string, args: readonly string[], options: object) => string
}

/** How a system names the machine, and the moment in which a process began: a number of a process is used again. */
interface Machine {
  /** Unique among machines, and among the starts of one; `undefined` if that is not known. */
  readonly id: string
  /** Differs between two processes that had one number; `undefined` if there is no such process. */
  readStart(pid: number): string | undefined
}

/**
 * This process, as the leases of its runs name it. Processes of other machines, and of containers that number their processes
 * themselves, cannot be judged from here: those leases end by time. `undefined` if the host has no processes.
 */
export function findHostProcess(given: Partial<System> | undefined): HostProcess | undefined {
  if (given?.getBuiltinModule === undefined || given.pid === undefined || given.kill === undefined)
    return undefined
  const system = given as System
  let machine: { readonly known: Machine | undefined } | undefined
  const readMachine = (): Machine | undefined => (machine ??= { known: findMachine(system) }).known
  let name: string | undefined
  return {
    /** Read when a run is first driven: who only reads a ledger pays nothing for it. */
    get name() {
      return (name ??= nameProcess(system, readMachine()))
    },
    hasEnded(holder) {
      const named = /^process (\d+) on \S+ \((\S+) since ([^)]+)\)/.exec(holder)
      const own = readMachine()
      if (named === null || own === undefined || named[2] !== own.id) return false
      try {
        return own.readStart(Number(named[1])) !== named[3]
      } catch {
        return false
      }
    },
  }
}

function nameProcess(system: System, machine: Machine | undefined): string {
  const { pid } = system
  const { hostname } = system.getBuiltinModule('node:os') as { readonly hostname: () => string }
  const since = machine?.readStart(pid)
  const where = `process ${pid} on ${hostname().replaceAll(/\s/g, '-') || 'a-machine'}`
  return machine && since !== undefined ? `${where} (${machine.id} since ${since})` : where
}

function findMachine(system: System): Machine | undefined {
  try {
    if (system.platform === 'linux') return readLinux(system.getBuiltinModule('node:fs') as Files, system)
    if (system.platform === 'darwin')
      return readDarwin(system.getBuiltinModule('node:child_process') as Programs, system)
  } catch {
    // It does not say which machine it is.
  }
  return undefined
}

/** Containers of one machine share its start, not its numbers: each has a name space of its own for them. */
function readLinux({ readFileSync, readlinkSync }: Files, system: System): Machine {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const numbers = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0]
  if (boot === '' || numbers === undefined) throw new Error('This system does not say which it is.')
  return {
    id: `${boot}/${numbers}`,
    readStart(pid) {
      let stat: string
      try {
        stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      } catch (error) {
        const { code } = error as { readonly code?: unknown }
        // A machine may hide the processes of other users (`hidepid`): those only look as if they were gone.
        if ((code === 'ENOENT' || code === 'ESRCH') && isNoProcess(pid, system)) return undefined
        throw error
      }
      // The name of the program, in brackets, may hold anything.
      const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      // A process that has died, and whose parent has not taken note of it, does nothing more.
      return state === 'Z' || state === 'X' ? undefined : fields[18]
    },
  }
}

function readDarwin({ execFileSync }: Programs, system: System): Machine {
  const ask = (file: string, args: readonly string[]): string =>
    execFileSync(file, args, {
      encoding: 'utf8',
      env: { LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  return {
    id: ask('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid']),
    readStart(pid) {
      if (isNoProcess(pid, system)) return undefined
      return ask('/bin/ps', ['-o', 'lstart=', '-p', String(pid)]).replaceAll(/\s+/g, '_')
    },
  }
}

function isNoProcess(pid: number, system: System): boolean {
  try {
    system.kill(pid, 0)
    return false
  } catch (error) {
    return (error as { readonly code?: unknown }).code === 'ESRCH'
  }
}

/**
 * THE ONE FILE THAT TOUCHES THE HOST: time, timers, randomness and the place where stray errors are reported, as every
 * JavaScript host has them, and SHA-256 where the host has that. Everything else gets them handed in.
 */
interface Globals {
  setTimeout(callback: () => void, delayMs: number): { unref?(): void } | number
  clearTimeout(timer: { unref?(): void } | number | undefined): void
  readonly performance?: { now(): number }
  readonly console?: { error(...data: unknown[]): void }
  /** Node, Bun and Deno have it; pages and workers do not. */
  readonly process?: Parameters<typeof findHostProcess>[0]
}

type HostHash = (algorithm: 'sha256', text: string) => string

const globals = globalThis as unknown as Globals

/** The longest delay that a host's timer takes; longer ones are waited for in pieces. */
const MAX_DELAY = 2 ** 31 - 1

function schedule(...[delayMs, callback, purpose]: Parameters<Clock['schedule']>): Cancel {
  let timer: ReturnType<Globals['setTimeout']> | undefined
  const arm = (leftMs: number): void => {
    const piece = Math.min(leftMs, MAX_DELAY)
    timer = globals.setTimeout(() => (leftMs > piece ? arm(leftMs - piece) : callback()), Math.max(0, piece))
    if (purpose === 'upkeep' && typeof timer === 'object') timer.unref?.()
  }
  arm(delayMs)
  return () => globals.clearTimeout(timer)
}

/** The host that the program runs in. */
export const defaultHost: Host = {
  clock: {
    now: () => Date.now(),
    schedule,
    // Only asked whether it is there: Node loads eleven modules when it is first read.
    ...('performance' in globals && { even: () => globals.performance?.now() ?? 0 }),
  },
  random: () => Math.random(),
  report: (error, what) => globals.console?.error(`Tallystick: ${what}:`, error),
  process: findHostProcess(globals.process),
}

/** A name that nothing else has: not by the host's `random`, with which tests make the ids of runs. */
export function createUniqueName(): string {
  return [1, 2].map(() => Math.floor(Math.random() * 2 ** 40).toString(36)).join('')
}

/** SHA-256 of a text, in hex, by a function of the host that answers at once; `undefined` if it has none. */
export function findHostDigest(): TextDigest | undefined {
  const crypto = globals.process?.getBuiltinModule?.('node:crypto') as
    | { readonly hash?: HostHash }
    | undefined
  const hash = crypto?.hash
  return hash && ((text) => hash('sha256', text))
}

/** Cancels a scheduled callback; calling it again does nothing. */
export type Cancel = () => void

/** The only source of time. */
export interface Clock {
  /**
   * Milliseconds since 1970 UTC, an integer. It may jump: a run smooths jumps, so its own time neither falls nor
   * leaps.
   */
  now(): number
  /**
   * Milliseconds since a fixed start, if the host has a monotonic clock. They never jump, even when a user sets the
   * host's clock.
   */
  even?(): number
  /**
   * Calls back once after `delayMs`, never at once. The callback must not throw. A timer for `upkeep` does not keep the
   * process alive: nothing waits for it.
   */
  schedule(delayMs: number, callback: () => void, purpose?: 'upkeep'): Cancel
}

/** The process that a runtime is in, as others that use its ledger know it. */
export interface HostProcess {
  /** Names the process for people and for `hasEnded`: a line of text, of this process alone. */
  readonly name: string
  /**
   * Returns true if the process that a name begins with is known to have ended. `false` if that cannot be known: for processes of
   * other machines.
   */
  hasEnded(name: string): boolean
}

/** The only source of randomness: a number from 0 (included) to 1 (excluded). */
export type Random = () => number

/** The functions that the runtime needs from its host. */
export interface Host {
  readonly clock: Clock
  readonly random: Random
  /**
   * Reports errors that no caller receives, with what happened in words: a subscriber threw, or a run failed and no
   * code awaited its result. Must not throw.
   */
  readonly report: (error: unknown, what: string) => void
  /** Absent in a host without processes: there, each lease of a run ends by time alone. */
  readonly process?: HostProcess | undefined
}

/** A run's clock: the host's, without its jumps. */
export interface SteadyClock extends Clock {
  /** From here on it shows no time before this one, in milliseconds since 1970 UTC. */
  atLeast(time: number): void
}

/** How late a timer of a busy process may be, in milliseconds: what is beyond it is a clock that was set ahead. */
const MAX_LATE_MS = 1_000

/**
 * The time of a run. It never falls, even when the host's clock is set back, or when another host with a clock ahead
 * dated the last event: then it continues from the last time, so that no wait takes longer than decided. It never
 * leaps, so that a clock set ahead ends no run: it follows the host's `even` time or, without one, the host's timers.
 */
export function createSteadyClock(clock: Clock): SteadyClock {
  const begunEven = clock.even?.()
  const begunAt = begunEven === undefined ? 0 : clock.now()
  let last = -Infinity
  /** How far the host's clock is ahead of the run's. */
  let ahead = 0
  /** The host's time of now, carried on by its even time. */
  const read = (): number =>
    begunEven === undefined ? clock.now() : begunAt + Math.floor((clock.even?.() ?? begunEven) - begunEven)
  const now = (): number => {
    const time = read()
    ahead = Math.min(ahead, time - last)
    last = time - ahead
    return last
  }
  return {
    now,
    schedule(delayMs, callback) {
      const waitMs = Math.max(0, delayMs)
      const due = now() + waitMs
      return clock.schedule(waitMs, () => {
        const late = read() - ahead - due
        if (late > MAX_LATE_MS) ahead += late
        callback()
      })
    },
    atLeast(time) {
      last = Math.max(last, time)
    },
  }
}
