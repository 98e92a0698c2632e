import type { HostProcess } from './clock.ts'

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
  /** Unique among machines, and among the starts of one; `undefined` where that is not known. */
  readonly id: string
  /** Differs between two processes that had one number; `undefined` where there is no such process. */
  startOf(pid: number): string | undefined
}

/**
 * This process, as the leases of its runs name it. Processes of other machines, and of containers that number their processes
 * themselves, cannot be judged from here: those leases end by time. `undefined` where the host has no processes.
 */
export function processOfHost(system: Partial<System> | undefined): HostProcess | undefined {
  if (system?.getBuiltinModule === undefined || system.pid === undefined || system.kill === undefined)
    return undefined
  return new SystemProcess(system as System)
}

class SystemProcess implements HostProcess {
  readonly #system: System
  #machine: Machine | undefined | 'unread' = 'unread'
  #name: string | undefined

  constructor(system: System) {
    this.#system = system
  }

  /** Read when a run is first driven: who only reads a ledger pays nothing for it. */
  get name(): string {
    return (this.#name ??= this.#nameOf(this.#system.pid))
  }

  hasEnded(holder: string): boolean {
    const named = /^process (\d+) on \S+ \((\S+) since ([^)]+)\)/.exec(holder)
    const machine = this.#machineOf()
    if (named === null || machine === undefined || named[2] !== machine.id) return false
    try {
      return machine.startOf(Number(named[1])) !== named[3]
    } catch {
      return false
    }
  }

  #nameOf(pid: number): string {
    const { hostname } = this.#system.getBuiltinModule('node:os') as { readonly hostname: () => string }
    const machine = this.#machineOf()
    const since = machine?.startOf(pid)
    const where = `process ${pid} on ${hostname().replaceAll(/\s/g, '-') || 'a-machine'}`
    return machine && since !== undefined ? `${where} (${machine.id} since ${since})` : where
  }

  #machineOf(): Machine | undefined {
    if (this.#machine === 'unread') {
      try {
        this.#machine = this.#read()
      } catch {
        this.#machine = undefined
      }
    }
    return this.#machine
  }

  #read(): Machine | undefined {
    switch (this.#system.platform) {
      case 'linux':
        return linux(this.#system.getBuiltinModule('node:fs') as Files, this.#system)
      case 'darwin':
        return darwin(this.#system.getBuiltinModule('node:child_process') as Programs, this.#system)
    }
    return undefined
  }
}

/** Containers of one machine share its start, not its numbers: each has a name space of its own for them. */
function linux({ readFileSync, readlinkSync }: Files, system: System): Machine {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const numbers = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0]
  if (boot === '' || numbers === undefined) throw new Error('This system does not say which it is.')
  return {
    id: `${boot}/${numbers}`,
    startOf(pid) {
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

function darwin({ execFileSync }: Programs, system: System): Machine {
  const ask = (file: string, args: readonly string[]): string =>
    execFileSync(file, args, {
      encoding: 'utf8',
      env: { LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  return {
    id: ask('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid']),
    startOf(pid) {
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
