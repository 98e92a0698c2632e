import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { InvalidArgumentError } from 'commander'
import { describe, expect, it } from 'vitest'
import {
  parseAge,
  parseEventNumbers,
  parseFilled,
  parseJsonObject,
  parseMoment,
  toTime,
  parsePositiveNumber,
  parseWholeNumber,
} from '../src/command/arguments.ts'
import { createProcessContext } from '../src/command/context.ts'
import { parseScore } from '../src/command/where.ts'
import { findVersionFault } from '../src/version.ts'
import { openShop } from './kit/shop.ts'
import { json, tallystickHere, startTallystick } from './kit/tallystick.ts'

const day = 86_400_000

describe('a word of the command line', () => {
  it.each<[string, (text: string) => unknown, Readonly<Record<string, unknown>>, readonly string[]]>([
    ['a text', parseFilled, { a: 'a', ' a ': ' a ' }, ['', ' ', '\n']],
    [
      'a whole number',
      parseWholeNumber,
      { 1: 1, 10: 10 },
      ['0', '01', '1.5', '-1', '1e3', '0x10', '9'.repeat(400), '', 'x'],
    ],
    [
      'a number',
      parsePositiveNumber,
      { 1: 1, '0.5': 0.5, '1e3': 1_000 },
      ['0', '-1', 'Infinity', '0x10', '0b1', '0o7', '1_000', '1e999', '', 'x'],
    ],
    [
      'a score',
      parseScore,
      { 0: 0, '-1': -1, '+.5': 0.5, '1.': 1, '1e-7': 1e-7 },
      ['0x10', '0b1', 'Infinity', 'NaN', '9'.repeat(400), '1 2', '1,5', '.', 'e1', '', ' '],
    ],
    [
      'a JSON object',
      parseJsonObject,
      { '{}': {}, '{"a":1}': { a: 1 } },
      ['[]', 'null', '1', '"x"', '{', ''],
    ],
    [
      'an age',
      parseAge,
      {
        '1s': 1_000,
        '2m': 120_000,
        '3h': 10_800_000,
        '4d': 4 * day,
        '2w': 14 * day,
        '1y': 365 * day,
        '0s': 0,
      },
      ['', '1', 's', '1x', '1.5h', '-1s', '1ss', '0x1s', `${'9'.repeat(400)}s`],
    ],
    [
      'a moment',
      parseMoment,
      {
        '3d': { text: '3d', agoMs: 3 * day },
        '1970-01-02': { text: '1970-01-02', at: day },
        '1970-01-01T00:00:01Z': { text: '1970-01-01T00:00:01Z', at: 1_000 },
      },
      ['', '3', '70-01-02', '1970-13-01', '1 1970-01-02', '3dd'],
    ],
    [
      'numbers of events',
      parseEventNumbers,
      { 4: [4], '4,7-9': [4, 7, 8, 9], '2-2': [2], '1-3,2': [1, 2, 3, 2] },
      ['', '0', '0-2', '3-2', '4,', 'x', '1-', '-1', '1-100001', '4 5', '0x4', '9'.repeat(400)],
    ],
  ])('is %s, or is refused', (_, parse, taken, refused) => {
    for (const [text, value] of Object.entries(taken)) expect([text, parse(text)]).toEqual([text, value])
    for (const text of refused) expect(() => parse(text)).toThrow(InvalidArgumentError)
  })

  it('may name a hundred thousand events', () => {
    expect(parseEventNumbers('1-100000')).toHaveLength(100_000)
  })

  it('is a moment as given, or so long ago', () => {
    expect([toTime(parseMoment('3s'), 10_000), toTime(parseMoment('1970-01-02'), 10_000)]).toEqual([
      7_000,
      day,
    ])
  })
})

describe('the place that a command runs in', () => {
  const contextOf = (json: boolean, ...terminals: readonly string[]) => {
    const stream = (name: string) => Object.assign(new PassThrough(), { isTTY: terminals.includes(name) })
    const [stdin, stdout, stderr] = [stream('stdin'), stream('stdout'), stream('stderr')]
    return createProcessContext(json, {
      ...{ env: {}, cwd: () => '/here', stdin: stdin as never, now: () => 5 },
      ...{ stdout: Object.assign(stdout, { columns: 90 }), stderr: Object.assign(stderr, { columns: 70 }) },
    })
  }

  it.each<[string, boolean, readonly string[], object]>([
    [
      'three terminals',
      false,
      ['stdin', 'stdout', 'stderr'],
      { person: true, isRead: true, columns: 90, progress: true },
    ],
    ['three terminals, and JSON', true, ['stdin', 'stdout', 'stderr'], { isRead: false }],
    ['stdin in a pipe', false, ['stdout', 'stderr'], { isRead: true, columns: 90, progress: true }],
    ['stderr in a file', false, ['stdin', 'stdout'], { isRead: true, columns: 90 }],
    ['stdout in a pipe', false, ['stdin', 'stderr'], { person: true, isRead: false, progress: true }],
    ['no terminal', false, [], { isRead: false }],
  ])('has a person to ask, a width and progress as its streams have them: %s', (_, json, terminals, has) => {
    const { person, isRead, columns, progress } = contextOf(json, ...terminals)
    expect({
      ...(person && { person: person.isTerminal }),
      isRead,
      ...(columns !== undefined && { columns }),
      ...(progress && { progress: true }),
    }).toEqual(has)
  })

  it('shows a run on stdout, or on stderr where stdout is for JSON', () => {
    const [people, programs] = [contextOf(false), contextOf(true)]
    expect([people.view === people.aside, programs.view === programs.aside]).toEqual([false, true])
    expect([people.now(), people.workingDirectory, people.programName]).toEqual([5, '/here', 'tallystick'])
  })
})

describe('what is asked wrongly', () => {
  it('is a 5 for a ledger, a run or a call that is not there, with the next command', async () => {
    await using shop = await openShop()
    const absent = await tallystickHere('list', shop.ledgerPath)
    expect(absent).toEqual({
      code: 5,
      stdout: '',
      stderr: expect.stringContaining(`There is no ledger at ${shop.ledgerPath}`),
    })
    const { runId } = await shop.start()
    expect(await tallystickHere('show', shop.ledgerPath, 'nobody')).toMatchObject({
      code: 5,
      stderr: expect.stringContaining(`tallystick list ${shop.ledgerPath}`),
    })
    expect(await tallystickHere('show', shop.ledgerPath, runId, '--at', '999')).toMatchObject({ code: 5 })
    const call = await tallystickHere('approve', shop.ledgerPath, runId, 'call_x', '--json')
    expect(call.code).toBe(5)
    expect(json(call.stderr)).toMatchObject({
      error: {
        code: 'not_found',
        exitCode: 5,
        message: expect.stringContaining(`tallystick show ${shop.ledgerPath} ${runId}`),
      },
    })
  })

  it.each([
    [['show'], "missing required argument 'ledger'"],
    [['list', 'x.db', '--wrong'], "unknown option '--wrong'"],
    [['dance'], "unknown command 'dance'"],
    [['shw', 'x.db'], '(Did you mean show?)'],
    [['list', 'x.db', '--sesion', 'a'], '(Did you mean --session?)'],
    [['run', 'x.db'], 'There is no text'],
    [['run', 'x.db', 'go', '--limit', 'maxTurns=soon'], 'maxTurns has to be a number from 0.'],
    [['run', 'x.db', 'go', '--limit', 'wishes=3'], 'Write name=value, such as maxTurns=5'],
    [['run', 'x.db', 'go', '--limit', 'onLimit=hope'], 'onLimit is one of finalize, stop, ask.'],
    [['run', 'x.db', 'go', '--answer', '--json'], 'cannot be used with option'],
    [
      ['feedback', 'x.db', 'latest', '--score', '0x10'],
      "argument '0x10' is invalid. A score has to be a number",
    ],
    [['show', 'x.db', 'latest', '--at', '0'], 'It has to be a whole number from 1.'],
    [['approve', 'x.db', 'latest', 'c', '--input', '[1]'], 'It has to be a JSON object'],
    [
      ['approve', 'x.db', 'latest', 'c', '--input', '{"id":2512292042121000001}'],
      'The number 2512292042121000001 cannot be read without changing it',
    ],
    [['deny', 'x.db', 'latest', 'c'], "required option '--reason <text>' not specified"],
    [['resume', 'x.db', 'latest', '--yes', '--deny', 'no'], 'cannot be used with option'],
  ])('is a 2 for %j', async (words, message) => {
    const ending = await tallystickHere(...words)
    expect(ending).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(message) })
  })

  it('names the help of the verb that was meant, or of all', async () => {
    const { stderr } = await tallystickHere('show', '--at', '1')
    expect(stderr).toMatch(/\nSee what it takes: tallystick show --help\n$/)
    expect((await tallystickHere('shw')).stderr).toMatch(/\nSee what it takes: tallystick --help\n$/)
  })

  it('is reported to programs as JSON', async () => {
    const { code, stdout, stderr } = await tallystickHere('list', '--json')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    const message = expect.stringContaining("missing required argument 'ledger'")
    expect(json(stderr)).toEqual({ error: { code: 'usage', exitCode: 2, message } })
  })

  it('is a 2 with the help, and nothing after it, where no verb is named', async () => {
    const { stdout: help } = await tallystickHere('--help')
    expect(await tallystickHere()).toEqual({ code: 2, stdout: '', stderr: help })
  })

  it('is answered with help where it is asked for', async () => {
    const { code, stdout } = await tallystickHere('--help')
    expect(code).toBe(0)
    for (const verb of [
      'run',
      'replay',
      'list',
      'show',
      'verify',
      'export',
      'approve',
      'deny',
      'cancel',
      'resume',
    ]) {
      expect(stdout).toMatch(new RegExp(`^ {2}${verb} `, 'm'))
    }
    expect(stdout).toContain('3 replay diverged, 4 ledger damaged')
  })

  it('leaves a file that is not a ledger as it is', async () => {
    await using shop = await openShop()
    await writeFile(shop.ledgerPath, 'not a database, but a shopping list')
    const { code, stderr } = await tallystickHere('list', shop.ledgerPath)
    expect(code).toBe(1)
    expect(stderr).toContain('not a Tallystick ledger')
  })
})

// The program itself, in a process of its own.

const home = join(import.meta.dirname, '..')
const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as {
  readonly version: string
}

describe('the program', () => {
  it.each(['--version', '-V'])('prints its version, and nothing else, with %s', async (word) => {
    expect(await startTallystick(word).ending).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })

  it('ends without an error where the reader of its output has seen enough', async () => {
    const child = spawn(process.execPath, [join(home, 'src/main.ts'), '--help'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child.stdout.destroy()
    const said = text(child.stderr)
    expect(await once(child, 'close')).toEqual([0, null])
    expect(await said).toBe('')
  })
})

it.each(['22.14.0', '22.20.1', '23.0.0', '24.11.0', '100.0.0'])('runs on Node %s', (node) => {
  expect(findVersionFault({ node })).toBeUndefined()
})

it.each(['22.13.0', '22.9.0', '20.20.2', '18.0.0'])('says on Node %s which it needs', (node) => {
  expect(findVersionFault({ node })).toContain(`needs Node 22.14 or newer, and this is Node ${node}`)
})

it('lets other hosts try', () => {
  expect(findVersionFault({ node: '20.0.0', deno: '2.1.0' })).toBeUndefined()
  expect(findVersionFault({ node: '20.0.0', bun: '1.3.0' })).toBeUndefined()
})
