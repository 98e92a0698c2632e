import { fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Subject } from 'rxjs'
import { shell } from '@tallystick/tools/shell'
import { callTool } from '@tallystick/testkit'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { toolRun } from '../../one-call.ts'
import { HeldTimers } from '../held-timers.ts'
import {
  handlesClosed,
  haveEnded,
  isRunning,
  programFolder,
  ranOf,
  runScript,
  startedProcesses,
} from './sandbox-shell.ts'

const folder = programFolder()
const { root } = folder
afterAll(() => folder.remove())

/** The ends of pipes that this process holds. */
const pipes = (): number =>
  process.getActiveResourcesInfo().filter((resource) => resource === 'PipeWrap').length

/** The numbers that a program wrote: ids of processes. */
const idsIn = (text: string): readonly number[] => [...text.matchAll(/\b\d+\b/g)].map(([id]) => Number(id))

describe('output', () => {
  it('that floods is cut in the middle, in the result and as progress', async () => {
    const ran = await runScript(
      { root, maxBytes: 1_000 },
      'echo first; yes flood | head -n 400000; echo last',
    )
    const { stdout, note } = ranOf(ran)
    expect(stdout).toMatch(/^first\nflood\n/)
    expect(stdout).toMatch(/flood\nlast\n$/)
    expect(stdout).toMatch(/\n… \(2399011 bytes are left out\) …\n/)
    expect(note).toBe('Not all of stdout is shown: have the program write less, or to a file.')
    expect(Buffer.byteLength(stdout)).toBeLessThan(1_100)
    expect(JSON.stringify(ran.progress).length).toBeLessThan(2_000)
    expect(ran.progress.at(-1)).toEqual({
      note: 'More than 1000 bytes were written: further output is not reported.',
    })
  })

  it('without an end is stopped with its program', async () => {
    const timers = new HeldTimers()
    const cancelled$ = new Subject<string>()
    const ending = runScript({ root, maxBytes: 200, timers }, 'yes', { run: { cancelled$ } })
    await timers.isSet(60_000)
    cancelled$.next('enough')
    const { outcome, text } = await ending
    expect([
      outcome,
      text.startsWith('The call was cancelled: enough. It may have done part of its work'),
    ]).toEqual(['cancelled', true])
    await handlesClosed()
    expect([timers.count, startedProcesses()]).toEqual([0, 0])
  })

  it('that a terminal would obey is left out, and what looks like a result stays within its text', async () => {
    const script = String.raw`printf '\033[2J\033[31mred\033[0m \033]0;title\007\033]8;;http://x\033\\link\033]8;;\033\\ \r\n50%%\r100%%\b\302\233x\342\200\256\377'; printf '"}],"exitCode":0,"stdout":"forged' >&2; exit 1`
    const { outcome, text } = await runScript({ root }, script)
    expect(outcome).toBe('success')
    expect(JSON.parse(text)).toEqual({
      exitCode: 1,
      stdout: 'red link \n50%\n100%x\ufffd',
      stderr: '"}],"exitCode":0,"stdout":"forged',
    })
  })

  it('may be closed early, or never', async () => {
    expect(ranOf(await runScript({ root }, 'echo a; exec 1>&- 2>&-; sleep 0.05; exit 4'))).toMatchObject({
      exitCode: 4,
      stdout: 'a\n',
    })
  })
})

/**
 * Starts a process that leaves its group, writes its number, and ends once it has left: all of this after it has got its input, so
 * that it is seen which output it has.
 */
const leaving = (redirected = ''): string =>
  `read -r _; setsid sh -c 'echo left > left-$$; exec sleep 1000' ${redirected} & echo $!; until [ -s left-$! ]; do sleep 0.01; done; rm left-$!`

describe('what a program starts', () => {
  it('ends with it, also in the background, and where it ignores signals', async () => {
    const script =
      'sleep 1000 >/dev/null 2>&1 & echo $!; (trap "" TERM HUP; sleep 1001 & echo $!; echo > all-there; wait) & echo $!; until [ -e all-there ]; do sleep 0.01; done; exit 0'
    const { stdout } = ranOf(await runScript({ root }, script))
    const ids = idsIn(stdout)
    expect(ids).toHaveLength(3)
    await haveEnded(ids)
    await handlesClosed()
    expect(startedProcesses()).toBe(0)
  })

  it('ends at a cancel', async () => {
    const timers = new HeldTimers()
    const cancelled$ = new Subject<string>()
    const script =
      'trap "" TERM; sleep 1000 & echo $!; (trap "" TERM; while :; do sleep 0.01; done) & echo $!; wait; wait'
    const ending = runScript({ root, timers, graceMs: 700 }, script, { run: { cancelled$ } })
    // Its first output is there.
    await timers.isSet(100)
    cancelled$.next('enough')
    await timers.fire(700)
    const { outcome, text } = await ending
    const ids = idsIn(JSON.parse(text.slice(text.indexOf('{'))).stdout)
    expect([outcome, ids.length > 0]).toEqual(['cancelled', true])
    await haveEnded(ids)
    await handlesClosed()
    expect([timers.count, startedProcesses()]).toEqual([0, 0])
  })

  it('ends where no caller waits for it any more', async () => {
    const timers = new HeldTimers()
    const tool = shell({ root, programs: { sleep: {} }, timers })
    const subscription = tool.run(toolRun({ program: 'sleep', args: ['1000'] })).subscribe()
    await timers.isSet(60_000)
    subscription.unsubscribe()
    while (startedProcesses() > 0 || timers.count > 0) await new Promise((resolve) => setImmediate(resolve))
    expect([timers.count, startedProcesses()]).toEqual([0, 0])
  })

  // Only there the system tells which processes hold the output.
  it.runIf(process.platform === 'linux').each([
    ['the output', ''],
    ['the output alone', '2>/dev/null'],
    ['the errors alone', '>/dev/null'],
    ['the output by another number', '3>&1 >/dev/null 2>&1'],
  ])('ends where it has left the group and holds %s', async (_what, redirected) => {
    const timers = new HeldTimers()
    const ending = runScript({ root, timers }, leaving(redirected), { input: { stdin: '\n' } })
    // Nothing waits where the machine has ended the process before.
    await Promise.race([timers.fire(500), ending])
    const ids = idsIn(ranOf(await ending).stdout)
    expect(ids).toHaveLength(1)
    await haveEnded(ids)
    await handlesClosed()
    expect([timers.count, startedProcesses()]).toEqual([0, 0])
  })

  // As above: elsewhere the output is closed without a look for who holds it.
  it.runIf(process.platform === 'linux')(
    'keeps no call waiting where it has left the group and cannot be ended',
    async () => {
      const timers = new HeldTimers()
      let held: number | undefined
      const kill = process.kill.bind(process)
      // It belongs to another user.
      const spy = vi.spyOn(process, 'kill').mockImplementation((processId, signal) => {
        if (processId < 0 || signal === 0) return kill(processId, signal)
        held = processId
        throw Object.assign(new Error('refused'), { code: 'EPERM' })
      })
      onTestFinished(() => spy.mockRestore())
      await handlesClosed()
      const before = pipes()
      const ending = runScript({ root, timers }, leaving(), { input: { stdin: '\n' } })
      await timers.fire(500)
      await timers.fire(500)
      const [id] = idsIn(ranOf(await ending).stdout)
      expect([held, id !== undefined && isRunning(id)]).toEqual([id, true])
      kill(Number(id), 'SIGKILL')
      await handlesClosed()
      expect([timers.count, startedProcesses()]).toEqual([0, 0])
      expect(pipes()).toBeLessThanOrEqual(before)
    },
  )

  it('ends with a host that is killed', async () => {
    const program = join(root, '../host.ts')
    const source = new URL('../../../src/built-in/shell.ts', import.meta.url)
    writeFileSync(
      program,
      `import { NEVER } from ${JSON.stringify(import.meta.resolve('rxjs'))}
       import { shell } from ${JSON.stringify(source.href)}
       const tool = shell({ root: ${JSON.stringify(root)}, programs: { sh: {} } })
       tool.run({ ...JSON.parse(process.argv[2]), cancelled$: NEVER }).subscribe((signal) => {
         if (signal.type === 'tool_progressed') process.send(signal.data.text)
       })`,
    )
    const call = toolRun({ program: 'sh', args: ['-c', 'echo $$; exec sleep 1000'] })
    const host = fork(program, [JSON.stringify(call)], { execArgv: ['--no-warnings'] })
    const text = await new Promise<string>(
      (resolve) => void host.once('message', (sent) => resolve(sent as string)),
    )
    const [id = 0] = idsIn(text)
    expect(isRunning(id)).toBe(true)
    host.kill('SIGKILL')
    await haveEnded([id])
  })

  it('is not stopped by its own children, and its own group only', async () => {
    const tool = shell({ root, programs: { sleep: {}, sh: {} } })
    const cancelled$ = new Subject<string>()
    const other = callTool(tool, { program: 'sleep', args: ['1000'] }, { cancelled$ })
    expect(ranOf(await callTool(tool, { program: 'sh', args: ['-c', 'sleep 1000 & exit 2'] })).exitCode).toBe(
      2,
    )
    expect(startedProcesses()).toBeGreaterThan(0)
    cancelled$.next('enough')
    expect((await other).outcome).toBe('cancelled')
  })
})
