// Which processes of this machine have ended, as the leases of their runs name them.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import * as files from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { findHostProcess } from '../src/values/host.ts'

type System = Required<NonNullable<Parameters<typeof findHostProcess>[0]>>

const failing = (code: string) => (): never => {
  throw Object.assign(new Error(code), { code })
}

async function sleeper(): Promise<ChildProcess & { readonly pid: number }> {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'spawn')
  return child as ChildProcess & { readonly pid: number }
}

/** As the process of a number names itself. */
const nameOf = (pid: number): string => {
  const { platform, kill, getBuiltinModule } = process as System
  return findHostProcess({ pid, platform, kill, getBuiltinModule })!.name
}

describe.runIf(process.platform === 'linux' || process.platform === 'darwin')('this process', () => {
  it('given another process, then that has ended once it is killed, and not before', async () => {
    const child = await sleeper()
    const name = nameOf(child.pid)
    const here = findHostProcess(process)!
    expect(name).toMatch(/^process \d+ on \S+ \(\S+ since \S+\)$/)
    expect(here.hasEnded(name)).toBe(false)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(here.hasEnded(name)).toBe(true)
  })

  it('given a number that another process has by now, then the one that began before has ended', () => {
    const here = findHostProcess(process)!
    expect(here.hasEnded(here.name)).toBe(false)
    expect(here.hasEnded(here.name.replace(/since .*\)/, 'since 1)'))).toBe(true)
  })

  it('given a process of another machine, or a text that names none, then nothing is known of it', () => {
    const here = findHostProcess(process)!
    for (const name of [
      here.name.replace(/\(\S+ since/, '(elsewhere since'),
      'a process',
      'process 1 on web-1',
    ])
      expect(here.hasEnded(name)).toBe(false)
  })
})

describe('a machine with Linux', () => {
  const linux = (kill: () => unknown): System => ({
    pid: 7,
    platform: 'linux',
    kill,
    getBuiltinModule: (name) =>
      name === 'node:os'
        ? { hostname: () => 'web 1' }
        : {
            ...files,
            readlinkSync: () => 'pid:[4026531836]',
            readFileSync: (path: string) => {
              if (path.endsWith('boot_id')) return 'boot-1\n'
              return path === '/proc/7/stat'
                ? stat('S')
                : path === '/proc/8/stat'
                  ? stat('Z')
                  : failing('ENOENT')()
            },
          },
  })
  const stat = (state: string): string => `7 (a) b) c) ${state} ${[...Array(18).keys()].join(' ')} 4711 0`

  it('that hides the processes of other users, then they have not ended', () => {
    const named = 'process 9 on web-1 (boot-1/4026531836 since 4711)'
    expect(findHostProcess(linux(failing('EPERM')))?.hasEnded(named)).toBe(false)
    expect(findHostProcess(linux(failing('ESRCH')))?.hasEnded(named)).toBe(true)
  })

  it('names its processes whatever their programs are called, and counts those as ended that nobody waits for', () => {
    const here = findHostProcess(linux(failing('ESRCH')))!
    expect(here.name).toBe('process 7 on web-1 (boot-1/4026531836 since 4711)')
    expect(here.hasEnded(here.name)).toBe(false)
    expect(here.hasEnded(here.name.replace('process 7', 'process 8'))).toBe(true)
  })
})

describe('a machine with macOS', () => {
  it('counts a process as ended that is gone, or that began at another time', () => {
    const system = (kill: () => unknown): System => ({
      pid: 7,
      platform: 'darwin',
      kill,
      getBuiltinModule: (name) =>
        name === 'node:os'
          ? { hostname: () => 'mac' }
          : {
              execFileSync: (file: string) => (file.endsWith('ps') ? 'Mon Jan  5 09:00:00 2026\n' : 'BOOT\n'),
            },
    })
    const here = findHostProcess(system(() => true))!
    expect(here.name).toBe('process 7 on mac (BOOT since Mon_Jan_5_09:00:00_2026)')
    expect(here.hasEnded(here.name)).toBe(false)
    expect(here.hasEnded(here.name.replace('09:00', '08:00'))).toBe(true)
    expect(findHostProcess(system(failing('ESRCH')))?.hasEnded(here.name)).toBe(true)
    expect(findHostProcess(system(failing('EPERM')))?.hasEnded(here.name)).toBe(false)
  })
})
