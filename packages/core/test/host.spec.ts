import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import * as files from 'node:fs'
import { createRuntime, memoryLedger } from '@tallystick/core'
import { afterEach, beforeEach, describe, expect, it, vi, onTestFinished } from 'vitest'
import {
  computeDigest,
  digestTextsByDefault,
  digestTextsWith,
  type TextDigest,
  useHostDigest,
} from '../src/values/digest.ts'
import { defaultHost, findHostDigest, findHostProcess } from '../src/values/host.ts'

describe('the default host', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: Date.UTC(2026, 0, 1) })
  })
  afterEach(() => {
    // A spy on a fake timer puts that back: real timers come after it.
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  it('tells the time of the host, and calls back after a delay', () => {
    const { clock } = defaultHost
    const called = vi.fn<() => void>()
    clock.schedule(1_000, called)
    expect(clock.now()).toBe(Date.UTC(2026, 0, 1))
    vi.advanceTimersByTime(999)
    expect(called).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(called).toHaveBeenCalledTimes(1)
    expect(clock.now()).toBe(Date.UTC(2026, 0, 1, 0, 0, 1))
  })

  it('never calls back at once, and not any more when it is called off', () => {
    const { clock } = defaultHost
    const called = vi.fn<() => void>()
    clock.schedule(-5, called)
    const cancel = clock.schedule(5, called)
    expect(called).not.toHaveBeenCalled()
    vi.advanceTimersByTime(0)
    expect(called).toHaveBeenCalledTimes(1)
    cancel()
    cancel()
    vi.advanceTimersByTime(10)
    expect(called).toHaveBeenCalledTimes(1)
  })

  it('waits longer than a timer of the host can: a year is a year', () => {
    const year = 365 * 24 * 3_600_000
    const called = vi.fn<() => void>()
    defaultHost.clock.schedule(year, called)
    // A timer that is set for more than 2^31 - 1 ms fires at once.
    vi.advanceTimersByTime(2 ** 31 - 1)
    expect(called).not.toHaveBeenCalled()
    vi.advanceTimersByTime(year - (2 ** 31 - 1) - 1)
    expect(called).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(called).toHaveBeenCalledTimes(1)
  })

  it('waits as long at once as a timer of the host can', () => {
    const timers = vi.spyOn(globalThis, 'setTimeout')
    const cancel = defaultHost.clock.schedule(2 ** 32, () => {})
    expect(timers.mock.calls.map(([, delayMs]) => delayMs)).toEqual([2 ** 31 - 1])
    cancel()
  })

  it('tells even time, which passes as its timers do', () => {
    const { clock } = defaultHost
    const begun = clock.even?.() ?? Number.NaN
    vi.advanceTimersByTime(250)
    expect(clock.even?.()).toBe(begun + 250)
  })

  it('calls a long wait off, whatever piece of it is under way', () => {
    const called = vi.fn<() => void>()
    const cancel = defaultHost.clock.schedule(2 ** 33, called)
    vi.advanceTimersByTime(2 ** 32)
    cancel()
    vi.advanceTimersByTime(2 ** 33)
    expect(called).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('draws numbers from 0 to 1, and writes stray errors to the console', () => {
    const draws = Array.from({ length: 1_000 }, () => defaultHost.random())
    expect(draws.every((number) => number >= 0 && number < 1)).toBe(true)
    expect(new Set(draws).size).toBeGreaterThan(900)
    const written = vi.spyOn(console, 'error').mockImplementation(() => {})
    const error = new Error('bad subscriber')
    defaultHost.report(error, 'A subscriber of run 1 threw')
    expect(written.mock.calls).toEqual([['Tallystick: A subscriber of run 1 threw:', error]])
  })
})

describe('the digest of the host', () => {
  // Which function computes the digests of a process: the one of the host, where it has one and none was given.

  function digestOfNode(text: string): string {
    return createHash('sha256').update(text).digest('hex')
  }

  /** As in a process that was given no function. */
  beforeEach(() => useHostDigest(undefined))
  afterEach(() => useHostDigest(digestOfNode))

  let made = 0
  /** A text that no test has asked for. */
  const fresh = (): string => `A text of this file, number ${++made}.`

  /** The same as that of Node, with the texts that it was asked for. */
  function counted(): { readonly digest: TextDigest; readonly texts: string[] } {
    const texts: string[] = []
    const digest: TextDigest = (text) => {
      texts.push(text)
      return digestOfNode(text)
    }
    return { digest, texts }
  }

  it('is SHA-256 in hex in Node, and missing where the host has no such function', () => {
    expect(findHostDigest()?.('a€')).toBe(digestOfNode('a€'))
    onTestFinished(() => void vi.unstubAllGlobals())
    for (const process of [undefined, {}, { getBuiltinModule: () => undefined }]) {
      vi.stubGlobal('process', process)
      expect(findHostDigest()).toBeUndefined()
    }
  })

  it('is used by default, and looked for once', () => {
    const { digest, texts } = counted()
    digestTextsByDefault(() => digest)
    digestTextsByDefault(() => expect.unreachable('one is there'))
    const text = fresh()
    expect(computeDigest(text)).toBe(digestOfNode(`"${text}"`))
    expect(texts).toEqual(['abc', `"${text}"`])
  })

  it('does not take the place of one that was given', () => {
    const [given, found] = [counted(), counted()]
    digestTextsWith(given.digest)
    digestTextsByDefault(() => found.digest)
    const text = fresh()
    computeDigest(text)
    expect([given.texts, found.texts]).toEqual([['abc', `"${text}"`], []])
  })

  const notImplemented: TextDigest = () => {
    throw new Error('crypto.hash is not implemented')
  }

  it.each([undefined, () => 'ba7816bf', notImplemented])('is not used where it is %s', (other) => {
    digestTextsByDefault(() => other)
    const text = fresh()
    expect(computeDigest(text)).toBe(digestOfNode(`"${text}"`))
  })

  it('is that of Node for a runtime', () => {
    const hash = vi.spyOn(process.getBuiltinModule('node:crypto'), 'hash')
    onTestFinished(() => hash.mockRestore())
    createRuntime({ ledger: memoryLedger() })
    const text = fresh()
    computeDigest(text)
    expect(hash.mock.calls).toEqual([
      ['sha256', 'abc'],
      ['sha256', `"${text}"`],
    ])
  })
})

// Which processes of this machine have ended, as the leases of their runs name them.

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
