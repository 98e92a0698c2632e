import { InvalidArgumentError } from 'commander'
import { describe, expect, it } from 'vitest'
import { createProcessContext } from '../src/command/context.ts'
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
import { parseScore } from '../src/command/where.ts'
import { PassThrough } from 'node:stream'

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
