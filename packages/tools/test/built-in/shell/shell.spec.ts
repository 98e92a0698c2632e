import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { callTool } from '@tallystick/testkit'
import { shell } from '@tallystick/tools/shell'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { keepOutput } from '../../../src/built-in/run-program.ts'
import {
  findProgram,
  type FoundProgram,
  createInputSchema,
  describePrograms,
} from '../../../src/built-in/shell-input.ts'
import { HeldTimers } from '../held-timers.ts'
import { handlesClosed, programFolder, ranOf, runScript, startedProcesses } from './sandbox-shell.ts'

const folder = programFolder()
const { root } = folder
afterAll(() => folder.remove())

describe('a program', () => {
  it('gets its arguments as they are, and answers with its exit code and both streams', async () => {
    const tool = shell({ root, programs: { printf: {} } })
    const args = ['%s\\n', '$HOME', '*', 'a b', "'", '`id`', '; rm -rf /', '']
    const { outcome, text } = await callTool(tool, { program: 'printf', args })
    expect([outcome, JSON.parse(text)]).toEqual([
      'success',
      { exitCode: 0, stdout: `${args.slice(1).join('\n')}\n`, stderr: '' },
    ])
    expect(ranOf(await runScript({ root }, 'echo out; echo err >&2; exit 3'))).toEqual({
      ...{ exitCode: 3, stdout: 'out\n', stderr: 'err\n' },
    })
    expect(ranOf(await runScript({ root }, 'kill -s SEGV $$'))).toMatchObject({
      exitCode: null,
      signal: 'SIGSEGV',
    })
  })

  it('reads the text that the call gives, or nothing', async () => {
    const tool = shell({ root, programs: { cat: {}, true: {} } })
    const long = 'é\n'.repeat(100_000)
    expect(ranOf(await callTool(tool, { program: 'cat', stdin: 'one\ntwo' })).stdout).toBe('one\ntwo')
    expect(ranOf(await callTool(tool, { program: 'cat' })).stdout).toBe('')
    // It ends before it has read anything.
    expect(ranOf(await callTool(tool, { program: 'true', stdin: long })).exitCode).toBe(0)
  })

  // A search program looks through what a pipe gives it, and else through its folder.
  it('has a pipe as its input where the call gives one, and else no input at all', async () => {
    const isDevice = 'test -c /dev/stdin; echo $?'
    expect(ranOf(await runScript({ root }, isDevice)).stdout).toBe('0\n')
    expect(ranOf(await runScript({ root }, isDevice, { input: { stdin: 'x' } })).stdout).toBe('1\n')
  })

  it('runs beside a guard, and waits for its output once, and no process is left of either', async () => {
    const timers = new HeldTimers()
    const children = (): readonly string[] =>
      execFileSync('ps', ['-o', 'pid=,comm=', '--ppid', String(process.pid)], { encoding: 'utf8' })
        .split('\n')
        .filter((line) => line !== '' && !line.endsWith(' ps'))
    const before = new Set(children())
    const started = (): readonly string[] => children().filter((child) => !before.has(child))
    const delays: number[] = []
    const counting = {
      schedule: (delayMs: number, callback: () => void) => {
        delays.push(delayMs)
        return timers.schedule(delayMs, callback)
      },
    }
    const ending = runScript({ root, timers: counting }, 'read line; echo $line', { input: { stdin: 'x\n' } })
    await timers.isSet(60_000)
    expect(started()).toHaveLength(2)
    expect(ranOf(await ending).stdout).toBe('x\n')
    await handlesClosed()
    expect([started(), delays.filter((delay) => delay === 500)]).toEqual([[], [500]])
  })

  it('runs in the root, or in a folder within it', async () => {
    symlinkSync('inner', join(root, 'link'))
    symlinkSync('/', join(root, 'out'))
    writeFileSync(join(root, 'file'), '')
    const where = async (cwd?: string) => {
      const { outcome, text } = await runScript({ root }, 'pwd -P', {
        input: cwd === undefined ? {} : { cwd },
      })
      return outcome === 'success' ? (JSON.parse(text) as { stdout: string }).stdout.trim() : text
    }
    expect(await where()).toBe(root)
    expect(await where('link/../inner')).toBe(join(root, 'inner'))
    expect(await where('out')).toBe(
      '"out" leads outside the root folder. Only what is inside it can be used.',
    )
    expect(await where('../')).toMatch(/leads outside the root folder/)
    expect(await where('/tmp')).toMatch(/is absolute/)
    expect(await where('file')).toBe('"file" is not a folder to run a program in.')
    expect(await where('none')).toBe('"none" does not exist.')
  })

  it('has the environment that the options name, and nothing of ours', async () => {
    vi.stubEnv('SHOP_API_KEY', 'known-to-the-host')
    vi.stubEnv('NODE_V8_COVERAGE', 'known-to-the-host')
    const env = shell({ root, programs: { env: {} } })
    expect(ranOf(await callTool(env, { program: 'env' })).stdout).toBe('')
    const named = shell({ root, programs: { env: {} }, env: { LANG: 'C', A: 'b' } })
    expect(
      ranOf(await callTool(named, { program: 'env' }))
        .stdout.split('\n')
        .sort(),
    ).toEqual(['', 'A=b', 'LANG=C'])
    vi.unstubAllEnvs()
  })

  it('is started by the path that it had when the tool was made', async () => {
    const [first, second] = [join(root, '../first'), join(root, '../second')]
    for (const folder of [first, second]) {
      mkdirSync(folder)
      writeFileSync(join(folder, 'which-one'), `#!/bin/sh\necho ${folder.at(-1)}\n`)
      chmodSync(join(folder, 'which-one'), 0o755)
    }
    vi.stubEnv('PATH', `relative:${root}:${second}:${process.env['PATH']}`)
    const tool = shell({ root, programs: { 'which-one': {} } })
    vi.stubEnv('PATH', first)
    expect(ranOf(await callTool(tool, { program: 'which-one' })).stdout).toBe('d\n')
    vi.unstubAllEnvs()
    const given = shell({ root, programs: { mine: { path: join(first, 'which-one') } } })
    expect(ranOf(await callTool(given, { program: 'mine' })).stdout).toBe('t\n')
    chmodSync(join(first, 'which-one'), 0o644)
    expect(await callTool(given, { program: 'mine' })).toMatchObject({
      ...{ outcome: 'failed', text: 'mine could not be started (EACCES). Nothing was run.' },
    })
  })

  it('is refused where it is not found, relative, no program, or in the root', () => {
    const find = (name: string, path?: string, searched?: string) => () =>
      findProgram('shell', [name, { path }], { root, ...(searched !== undefined && { searched }) })
    expect(find('no-such-program')).toThrow(
      /^The tool shell: the program no-such-program is in no folder of PATH outside the root\./,
    )
    expect(find('sh', 'bin/sh')).toThrow(/has the path "bin\/sh", which is relative/)
    expect(find('sh', join(root, 'file'))).toThrow(/is not a file that may be executed/)
    expect(find('sh', root)).toThrow(/is not a file that may be executed/)
    expect(find('a/b')).toThrow(/"a\/b" is not the name of a program/)
    writeFileSync(join(root, 'made'), '#!/bin/sh\n')
    chmodSync(join(root, 'made'), 0o755)
    expect(find('made', undefined, root)).toThrow(/outside the root/)
    expect(find('made', undefined, join(root, 'link/..'))).toThrow(/outside the root/)
    expect(find('made', undefined, `.:relative:`)).toThrow(/outside the root/)
    const scripts = relative(process.cwd(), join(root, '../first'))
    expect(find('which-one', undefined, scripts)).toThrow(/outside the root/)
    for (const folder of [join(root, 'inner'), `${root}-beside`]) {
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, 'within'), '#!/bin/sh\n')
      chmodSync(join(folder, 'within'), 0o755)
    }
    expect(find('within', undefined, join(root, 'inner'))).toThrow(/outside the root/)
    expect(find('within', undefined, `${root}-beside`)()).toMatchObject({ path: `${root}-beside/within` })
    expect(() => findProgram('shell', ['sh', {}], { root: '/', searched: '/bin:/usr/bin' })).toThrow(
      /outside the root/,
    )
    expect(find(`a/${'b'.repeat(100)}`)).toThrow(` "a/${'b'.repeat(78)}" is not the name`)
    expect(find('made', join(root, 'made'))()).toMatchObject({ path: join(root, 'made') })
  })
})

describe('what a call may ask for', () => {
  const programs = {
    echo: {
      args: [
        ['status'],
        { first: ['log', '-n'], more: /\d{1,3}|[\w-]+/i },
        { first: ['all'], more: true as const },
      ],
      about: 'Says things.',
    },
    printf: { args: (args: readonly string[]) => args.every((arg) => !arg.startsWith('-')) },
    env: {
      args: () => {
        throw new Error('broken')
      },
    },
    true: { args: [] },
  }
  const tool = shell({ root, programs })
  const outcomeOf = async (program: string, args?: readonly string[]) =>
    (await callTool(tool, { program, ...(args && { args: [...args] }) })).outcome

  it('are the arguments that are allowed, and nothing is asked or run for others', async () => {
    for (const args of [['status'], ['log', '-n'], ['log', '-n', '5', 'Ab'], ['all', '--output=x']])
      expect([args, await outcomeOf('echo', args)]).toEqual([args, 'success'])
    for (const args of [
      [],
      ['push'],
      ['status', '--short'],
      ['log', '-n', '5', '--output=x'],
      ['log', '-n', '5\n'],
      ['log'],
      ['log', '--all'],
      ['Status'],
      ['-c', 'status'],
    ])
      expect([args, await outcomeOf('echo', args)]).toEqual([args, 'invalid_input'])
    expect(await callTool(tool, { program: 'echo', args: ['push'] })).toMatchObject({
      asksApproval: false,
      text: 'The input does not fit the schema of shell. Nothing was run. Correct it and call the tool again:\n- args: only these are allowed: echo status, echo log -n [\\d{1,3}|[\\w-]+ …], echo all …',
    })
    expect([await outcomeOf('printf', ['a']), await outcomeOf('printf', ['a', '-v'])]).toEqual([
      'success',
      'invalid_input',
    ])
    expect([await outcomeOf('env'), await outcomeOf('true')]).toEqual(['invalid_input', 'invalid_input'])
  })

  it('are the programs that are named, texts without NUL, and whole characters', async () => {
    expect((await callTool(tool, { program: 'sh' })).text).toContain(
      '- program: expected one of "echo", "printf", "env", "true", received another string',
    )
    expect((await callTool(tool, { program: '/bin/sh' })).outcome).toBe('invalid_input')
    expect((await callTool(tool, { program: 'printf', args: ['a\0b'] })).text).toContain(
      '- args[0]: holds a NUL character',
    )
    expect((await callTool(tool, { program: 'printf', args: 'a' })).outcome).toBe('invalid_input')
    expect((await callTool(tool, { program: 'printf', args: ['a'], stdin: '\ud800' })).text).toContain(
      '- stdin: holds half of a surrogate pair',
    )
  })

  it('are not named by a pattern that could be tried for ever', () => {
    for (const more of [/(?=a)b/, /(a)\1/]) {
      expect(() => shell({ root, programs: { echo: { args: [{ first: [], more }] } } })).toThrow(
        /RegExp without/,
      )
    }
  })

  it('is in the description', () => {
    expect(tool.description).toMatch(
      /\nThe programs are:\n- echo: Says things\. \(only echo status, echo log -n \[\\d\{1,3\}\|\[\\w-\]\+ …\], echo all …\)\n- printf\n- env\n- true$/,
    )
    expect(shell({ root, programs: { true: {} }, about: ' For the build. ' }).description).toMatch(
      /^For the build\. Runs a program/,
    )
  })
})

describe('a person', () => {
  const programs = { cat: { read: true }, sh: {} }
  const asks = async (approval?: 'always' | 'never' | (() => string | boolean)) => {
    const tool = shell({ root, programs, ...(approval !== undefined && { approval }) })
    const calls = [
      { program: 'cat' },
      { program: 'sh', args: ['-c', 'echo "a b"'], cwd: 'inner', stdin: 'abc' },
    ]
    const answers = await Promise.all(calls.map((input) => callTool(tool, input)))
    return answers.map(({ asksApproval, approvalReason }) => approvalReason ?? asksApproval)
  }

  it('is asked about each call of a program that is not marked as a read, with the call in words', async () => {
    expect(await asks()).toEqual([
      false,
      'runs sh -c "echo \\"a b\\"" in "inner", with 3 characters of input',
    ])
    expect(await asks('always')).toEqual(await asks())
    expect(await asks('never')).toEqual([false, false])
    expect(await asks(() => 'careful')).toEqual([false, 'careful'])
  })

  it('sees a tool that writes, unless all of its programs only read', () => {
    const effectOf = (each: Readonly<Record<string, { read?: boolean }>>) => {
      const { effect, recovery, approval } = shell({ root, programs: each })
      return [effect, recovery, approval]
    }
    expect(effectOf(programs)).toEqual(['write', 'report', 'by code'])
    expect(effectOf({ cat: { read: true } })).toEqual(['read', 'rerun', 'by code'])
  })
})

describe('a program that takes too long', () => {
  it('is asked to end, then ended, and the model reads what it wrote', async () => {
    const timers = new HeldTimers()
    const script = 'trap "" TERM; echo started; while :; do sleep 0.01; done'
    const ending = runScript({ root, timeoutMs: 700, graceMs: 900, timers }, script, { input: {} })
    await timers.isSet(100)
    await timers.fire(700)
    await timers.fire(900)
    expect(await ending).toMatchObject({
      outcome: 'timed_out',
      text: 'sh had not ended after 700 ms and was stopped. It may have done part of its work. Until then: {"exitCode":null,"signal":"SIGKILL","stdout":"started\\n","stderr":""}',
    })
    await handlesClosed()
    expect([timers.count, startedProcesses()]).toEqual([0, 0])
  })

  it('may end in order', async () => {
    const timers = new HeldTimers()
    const script = 'trap "echo bye; exit 5" TERM; echo started; while :; do sleep 0.01; done'
    const ending = runScript({ root, timeoutMs: 700, timers }, script)
    await timers.isSet(100)
    await timers.fire(700)
    const { outcome, text } = await ending
    expect(outcome).toBe('timed_out')
    expect(JSON.parse(text.slice(text.indexOf('{')))).toMatchObject({ exitCode: 5, stdout: 'started\nbye\n' })
    await handlesClosed()
    expect([timers.count, startedProcesses()]).toEqual([0, 0])
  })
})

// What a model may give the shell, and what it reads of the programs and of what it gave wrongly.

const program = (name: string, more: Partial<FoundProgram> = {}): FoundProgram =>
  ({ name, file: `/bin/${name}`, read: false, ...more }) as unknown as FoundProgram
const starts = (count: number) => Array.from({ length: count }, (_, at) => [`do${at}`])
const listed = (count: number): string =>
  starts(count)
    .map(([start]) => `git ${start}`)
    .join(', ')

describe('the programs in words', () => {
  it('name each, what it is for, and the arguments that are allowed', () => {
    expect(
      describePrograms([
        program('ls'),
        program('sh', { about: ' Runs a script. ' }),
        program('git', { about: 'Keeps versions.', args: [['log'], ['show', '--stat']] }),
        program('make', { args: () => true }),
      ]),
    ).toBe(
      'The programs are:\n- ls\n- sh: Runs a script.\n- git: Keeps versions. (only git log, git show --stat)\n- make',
    )
  })

  it('show twelve rules', () => {
    expect(describePrograms([program('git', { args: starts(12) })])).toBe(
      `The programs are:\n- git (only ${listed(12)})`,
    )
    expect(describePrograms([program('git', { args: starts(13) })])).toBe(
      `The programs are:\n- git (only ${listed(12)} and others)`,
    )
  })
})

describe('the input of the shell', () => {
  const broken = (): never => {
    throw new Error('rules are gone')
  }
  const { parse } = createInputSchema('shell', [
    program('ls'),
    program('git', { args: [['log'], ['show', '--stat']] }),
    program('make', { args: ([target]) => target === 'all' }),
    program('odd', { args: () => 'yes' as never }),
    program('gone', { args: broken }),
  ])
  const only = [{ path: ['args'], message: 'only these are allowed: git log, git show --stat' }]
  const no = (name: string) => [{ path: ['args'], message: `${name} is not allowed with these arguments` }]

  it.each([
    { program: 'ls' },
    { program: 'ls', args: ['-l', ''], stdin: 'a😀' },
    { program: 'git', args: ['log'] },
    { program: 'git', args: ['show', '--stat'] },
    { program: 'make', args: ['all', 'more'] },
  ])('may be %j', async (input) => {
    expect(await parse(input)).toEqual({ ok: true, value: input })
  })

  it.each<[object, readonly object[]]>([
    [{ program: 'git' }, only],
    [{ program: 'git', args: ['push'] }, only],
    [{ program: 'git', args: ['log', '--output=/etc/passwd'] }, only],
    [{ program: 'git', args: ['show', '-p'] }, only],
    [{ program: 'make', args: ['clean'] }, no('make')],
    [{ program: 'odd' }, no('odd')],
    [{ program: 'gone' }, no('gone')],
    [
      { program: 'ls', args: ['a', 'b\0', '\0'], stdin: 'a\ud83d' },
      [
        { path: ['args', 1], message: 'holds a NUL character' },
        { path: ['args', 2], message: 'holds a NUL character' },
        { path: ['stdin'], message: 'holds half of a surrogate pair' },
      ],
    ],
    [
      { program: 'make', args: ['\0'] },
      [{ path: ['args', 0], message: 'holds a NUL character' }, ...no('make')],
    ],
  ])('may not be %j', async (input, issues) => {
    expect(await parse(input as never)).toEqual({ ok: false, issues })
  })

  it('names one of the programs', async () => {
    expect(await parse({ program: 'rm' })).toMatchObject({ ok: false })
    expect(await parse({})).toMatchObject({ ok: false })
  })
})

// What is kept of the output of a program: whole characters of its beginning and of its end.

/** What is kept of pieces that are written one after the other. */
function kept(maxBytes: number, pieces: readonly (string | Uint8Array)[], shownBytes?: number) {
  const output = keepOutput(maxBytes)
  for (const piece of pieces) output.write(Buffer.from(piece))
  return { text: output.text(shownBytes), written: output.written, omitted: output.omitted }
}

describe('the output of a program', () => {
  it.each([
    ['é', 2],
    ['€', 3],
    ['\u0800', 3],
    ['😀', 4],
    ['a', 1],
  ])('of %j is cut between characters, wherever that falls', (character, length) => {
    const whole = character.repeat(40)
    for (let maxBytes = 8; maxBytes < 40; maxBytes++) {
      const [head, tail] = [Math.ceil(maxBytes / 2), Math.floor(maxBytes / 2)].map((bytes) =>
        character.repeat(Math.floor(bytes / length)),
      ) as [string, string]
      const cut = 40 * length - Buffer.byteLength(head + tail)
      expect(kept(maxBytes, [whole]).text).toBe(`${head}\n… (${cut} bytes are left out) …\n${tail}`)
    }
  })

  it('is whole where it fits, and else shown as far as is asked for', () => {
    expect(kept(10, ['01234', '56789'])).toEqual({ text: '0123456789', written: 10, omitted: 0 })
    expect(kept(10, ['01234', '567890'])).toEqual({
      ...{ text: '01234\n… (1 bytes are left out) …\n67890', written: 11, omitted: 1 },
    })
    expect(kept(10, ['0123456789'], 10).text).toBe('0123456789')
    expect(kept(10, ['0123456789'], 4).text).toBe('01\n… (6 bytes are left out) …\n89')
    expect(kept(10, ['0123456789'], 9).text).toBe('01234\n… (0 bytes are left out) …\n56789')
    expect(kept(10, ['0123456789ab'], 4).text).toBe('01\n… (8 bytes are left out) …\nab')
    expect(kept(10, ['0123456789ab'], 99).text).toBe('01234\n… (2 bytes are left out) …\n789ab')
    expect(kept(3, ['0123456789']).text).toBe('01\n… (7 bytes are left out) …\n9')
    expect(kept(10, [])).toEqual({ text: '', written: 0, omitted: 0 })
  })

  it('keeps bytes that are no text as they come', () => {
    const odd = Uint8Array.from([0x80, 0x80, 0x80, 0x80, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff])
    expect(kept(8, [odd]).text).toBe('����\n… (2 bytes are left out) …\n����')
    // A byte that begins a character is left out with its end, and three bytes at most that end one.
    expect(kept(8, [odd.toReversed()]).text).toBe('���\n… (6 bytes are left out) …\n�')
    expect(kept(2, ['é', 'abc']).text).toBe('\n… (4 bytes are left out) …\nc')
  })

  it('is the same in pieces of any size, also in many', () => {
    const whole = Array.from({ length: 9_000 }, (_, at) => String(at % 10)).join('')
    const once = kept(100, [whole])
    expect(kept(100, whole.split(''))).toEqual(once)
    expect(once).toMatchObject({ written: 9_000, omitted: 8_900 })
    const large = 'x'.repeat(70_000)
    expect(kept(100, [large, large, 'end'])).toEqual(kept(100, [`${large}${large}end`]))
  })
})
