// What a model may give the shell, and what it reads of the programs and of what it gave wrongly.
import { describe, expect, it } from 'vitest'
import { type FoundProgram, createInputSchema, describePrograms } from '../../../src/built-in/shell-input.ts'

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
