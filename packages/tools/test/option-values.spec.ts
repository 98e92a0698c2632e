// Every value that an option of a tool may have, and the values just beside them.
import { ConfigurationError } from '@tallystick/core'
import { defineTool } from '@tallystick/tools'
import { calculator } from '@tallystick/tools/calculator'
import { filesTools } from '@tallystick/tools/files'
import { httpFetch } from '@tallystick/tools/http-fetch'
import { shell } from '@tallystick/tools/shell'
import { sqlQuery } from '@tallystick/tools/sql-query'
import { describe, expect, it } from 'vitest'
import { ToolError } from '../src/define/outcome.ts'
import { declarePackage, loadInCall, requirePackage } from '../src/packages.ts'

interface Values {
  readonly taken: readonly unknown[]
  readonly refused: readonly unknown[]
}

const work = (): string => ''
const makers = {
  defineTool: (options: object) =>
    defineTool({
      name: 'a',
      description: 'A.',
      input: { type: 'object' },
      effect: 'read',
      execute: work,
      ...options,
    } as never),
  httpFetch: (options: object) => httpFetch(options),
  sqlQuery: (options: object) => sqlQuery({ path: 'shop.db', ...options }),
  calculator: (options: object) => calculator(options),
  filesTools: (options: object) => filesTools({ root: '.', ...options }),
  shell: (options: object) => shell({ root: '.', programs: { sh: {} }, ...options }),
}

const name: Values = { taken: ['a', 'A_z.0-9', 'x'.repeat(128)], refused: ['', 'a b', 'x'.repeat(129), 1] }
const text: Values = { taken: ['A.'], refused: ['', ' ', 1, null] }
const wait: Values = { taken: [1, 2 ** 31 - 1], refused: [0, 1.5, 2 ** 31, Number.NaN, '1', null] }
const ownWait: Values = { ...wait, taken: [1, 15_000] }
const whole: Values = { taken: [1, 200], refused: [0, -1, 1.5, Infinity, '1', null] }
const approval: Values = { taken: ['always', 'never', () => true], refused: ['sometimes', true, null, {}] }
const flag: Values = { taken: [true, false], refused: [1, 'yes', null] }
const timers: Values = { taken: [{ schedule: () => () => {} }], refused: [1, 'x', null] }

const options: Readonly<Record<keyof typeof makers, Readonly<Record<string, Values>>>> = {
  defineTool: {
    name,
    description: text,
    input: {
      taken: [{ type: 'object' }, { type: 'object', properties: {} }],
      refused: [undefined, {}, null, 'x', [], () => 1, { type: 'array' }],
    },
    effect: { taken: ['read', 'write'], refused: ['pure', '', undefined, 1] },
    execute: { taken: [work], refused: [undefined, 'x', null] },
    output: { taken: [{ type: 'object' }, undefined], refused: [null, 'x', [], () => 1] },
    approval,
    recovery: { taken: ['rerun', 'ask', 'report', undefined], refused: ['retry', 'reconcile', null, 1] },
    timeoutMs: wait,
    reconcile: { taken: [() => 'unknown', undefined], refused: ['x', null] },
  },
  httpFetch: {
    name,
    description: text,
    methods: {
      taken: [['GET'], ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']],
      refused: [[], ['get'], ['TRACE'], 'GET', [1], null],
    },
    origins: {
      taken: [[], ['https://a.example', 'http://a.example:8080/']],
      refused: ['x', ['a.example'], ['https://a.example/x'], ['ftp://a.example'], [1]],
    },
    allow: { taken: [[], ['localhost:3000', '10.0.0.7:80']], refused: ['x', ['localhost'], [1]] },
    connectTo: {
      taken: [{}, { 'a.internal:80': '127.0.0.1:4123' }],
      refused: ['x', { a: 'b' }, { 'a:80': 1 }],
    },
    headers: {
      taken: [{}, { 'https://a.example': { 'x-key': 'swordfish' } }],
      refused: [
        ...['x', { 'a.example': {} }, { 'https://a.example': 'x' }, { 'https://a.example': { a: 1 } }],
        { 'https://a.example': { 'x-key': 'short' } },
      ],
    },
    openHeaders: { taken: [[], ['x-version']], refused: ['x', [''], [1]] },
    contentTypes: { taken: [[], ['text/*']], refused: ['x', [1]] },
    maxBytes: whole,
    timeoutMs: ownWait,
    maxRedirects: { taken: [0, 1, 5], refused: [-1, 1.5, '1', null] },
    approval,
    resolve: { taken: [() => Promise.resolve([])], refused: ['x', null] },
    timers,
  },
  sqlQuery: {
    path: { taken: ['shop.db', '/a/b.db'], refused: ['', ':memory:', 'file:shop.db', 1, null, undefined] },
    name,
    description: text,
    maxRows: whole,
    maxBytes: whole,
    timeoutMs: ownWait,
    timers,
  },
  calculator: { name, description: text },
  filesTools: {
    root: { taken: ['.', 'packages'], refused: ['', 'none-here', 'package.json', 1, null, undefined] },
    write: flag,
    prefix: { taken: ['', 'docs_', 'A.b-9'], refused: ['a b', 'x'.repeat(101), 1, null] },
    about: text,
    hidden: flag,
    ignore: {
      taken: [[], ['node_modules/', '*.log', '/a/{b,c}']],
      refused: ['x', [''], [1], ['!a'], ['/'], ['['], ['{'], ['a'.repeat(201)]],
    },
    maxBytes: whole,
    maxFileBytes: whole,
    maxEntries: whole,
    maxVisited: whole,
    timeoutMs: wait,
    approval,
  },
  shell: {
    root: { taken: ['.', 'packages'], refused: ['', 'none-here', 'package.json', 1, null, undefined] },
    programs: {
      taken: [
        { sh: {} },
        { sh: { path: '/bin/sh', args: [['-c', 'x']], read: true, about: 'A shell.' } },
        { sh: { args: () => true } },
      ],
      refused: [
        ...[
          {},
          null,
          undefined,
          'sh',
          ['sh'],
          { sh: 'sh' },
          { sh: null },
          { 'a b': {} },
          { 'none-such': {} },
        ],
        ...[
          { sh: { path: 'sh' } },
          { sh: { path: '/none' } },
          { sh: { args: ['-c'] } },
          { sh: { args: 'x' } },
        ],
        ...[{ sh: { args: async () => true } }, { sh: { read: 1 } }, { sh: { about: '' } }],
        { sh: { readOnly: true } },
      ],
    },
    env: {
      taken: [{}, { A: 'b' }],
      refused: ['x', { A: 1 }, null, { 'A=B': 'c' }, { A: 'b\0' }, { '': 'x' }],
    },
    name,
    about: text,
    maxBytes: whole,
    timeoutMs: ownWait,
    graceMs: ownWait,
    approval,
    timers,
  },
}

const otherNames: Readonly<Record<keyof typeof makers, Readonly<Record<string, string>>>> = {
  defineTool: {
    ...{ parameters: 'input', schema: 'input', inputSchema: 'input', args: 'input' },
    ...{ run: 'execute', handler: 'execute', func: 'execute', invoke: 'execute', call: 'execute' },
    ...{ needsApproval: 'approval', requireApproval: 'approval', requiresApproval: 'approval' },
    ...{ outputSchema: 'output', toModelOutput: 'toModel' },
    ...{ heartbeatMs: 'quietMs', heartbeatTimeoutMs: 'quietMs', idleMs: 'quietMs' },
    ...{ maxResultSize: 'maxResultChars', maxResultSizeChars: 'maxResultChars' },
  },
  httpFetch: { domains: 'origins', hosts: 'allow', timeout: 'timeoutMs' },
  sqlQuery: { file: 'path', database: 'path', limit: 'maxRows', timeout: 'timeoutMs' },
  calculator: { title: '' },
  filesTools: {
    ...{ path: 'root', folder: 'root', directory: 'root', cwd: 'root', allowedDirectories: 'root' },
    ...{
      writable: 'write',
      readOnly: 'write',
      exclude: 'ignore',
      timeout: 'timeoutMs',
      description: 'about',
    },
  },
  shell: {
    ...{ cwd: 'root', folder: 'root', directory: 'root', workdir: 'root', environment: 'env' },
    ...{ commands: 'programs', allow: 'programs', allowed: 'programs', timeout: 'timeoutMs' },
    ...{ description: 'about', maxOutput: 'maxBytes' },
  },
}

/** What becomes of a tool with these options: nothing, or the class of the error. */
function fateOf(make: () => unknown): string {
  try {
    make()
    return 'taken'
  } catch (error) {
    return error instanceof ConfigurationError ? 'refused' : String(error)
  }
}

const makerNames = Object.keys(makers) as readonly (keyof typeof makers)[]
const cases = makerNames.flatMap((maker) =>
  Object.entries(options[maker]).map(([option, values]) => ({ maker, option, values })),
)

describe('an option of a tool', () => {
  it.each(cases)('$option of $maker takes its values, and no other', ({ maker, option, values }) => {
    const fates = (list: readonly unknown[]) =>
      list.map((value) => [value, fateOf(() => makers[maker]({ [option]: value }))])
    expect(fates(values.taken)).toEqual(values.taken.map((value) => [value, 'taken']))
    expect(fates(values.refused)).toEqual(values.refused.map((value) => [value, 'refused']))
  })

  it.each(makerNames)(
    'by the name of another library is refused, with the name that %s has for it',
    (maker) => {
      for (const [other, meant] of Object.entries(otherNames[maker])) {
        const hint = meant === '' ? `${other} is not an option. Options are` : `Did you mean ${meant}?`
        expect(() => makers[maker]({ [other]: 'x' })).toThrow(hint)
      }
    },
  )

  it.each<[string, (given: object) => unknown, Readonly<Record<string, string>>]>([
    [
      'programs.sh',
      (given) => makers.shell({ programs: { sh: given } }),
      {
        ...{ command: 'path', bin: 'path', arguments: 'args', allow: 'args', readOnly: 'read' },
        ...{ effect: 'read', description: 'about' },
      },
    ],
    [
      'retry',
      (given) => makers.defineTool({ retry: { maxAttempts: 2, ...given } }),
      {
        ...{ attempts: 'maxAttempts', retries: 'maxAttempts', maxRetries: 'maxAttempts' },
        ...{ backoffMs: 'baseMs', initialDelayMs: 'baseMs', minTimeout: 'baseMs' },
        ...{ maxBackoffMs: 'capMs', maxDelayMs: 'capMs', maxTimeout: 'capMs' },
        ...{ retryOn: 'when', shouldRetry: 'when' },
      },
    ],
  ])('of %s by the name of another library is refused, and named', (place, make, names) => {
    for (const [other, meant] of Object.entries(names))
      expect(() => make({ [other]: 'x' })).toThrow(`Did you mean ${place}.${meant}?`)
  })

  it('of retry takes its values, and no other', () => {
    const fate = (retry: object): string =>
      fateOf(() => makers.defineTool({ retry: { maxAttempts: 2, ...retry } }))
    for (const name of ['baseMs', 'capMs', 'maxRetryAfterMs', 'maxTotalMs']) {
      expect([0, 0.5, 1].map((value) => fate({ [name]: value }))).toEqual(['taken', 'taken', 'taken'])
      expect([-1, '1', null].map((value) => fate({ [name]: value }))).toEqual([
        'refused',
        'refused',
        'refused',
      ])
    }
    expect([1, 1.5, 0].map((maxAttempts) => fate({ maxAttempts }))).toEqual(['taken', 'refused', 'refused'])
  })

  it('may be left out', () => {
    for (const maker of makerNames) expect(fateOf(() => makers[maker]({}))).toBe('taken')
    expect([httpFetch().name, sqlQuery({ path: 'x' }).name, calculator().name]).toEqual([
      ...['http_fetch', 'sql_query', 'calculator'],
    ])
    expect([httpFetch().timeoutMs, sqlQuery({ path: 'x' }).timeoutMs]).toEqual([16_000, 45_000])
    expect(calculator({ name: 'sums', description: 'Sums.' })).toMatchObject({
      ...{ name: 'sums', description: 'Sums.', effect: 'read' },
    })
  })
})

it('a tool is named in what is wrong with it, where it has a name', () => {
  expect(() => makers.defineTool({ effect: 'x' })).toThrow(/^The tool a: effect is/)
  for (const given of [5, '', undefined])
    expect(() => makers.defineTool({ name: given })).toThrow(/^defineTool: name is/)
})

it('options that are no object are refused, whatever they are', () => {
  const makers = [filesTools, httpFetch, sqlQuery, calculator, shell] as readonly ((
    given: never,
  ) => unknown)[]
  for (const maker of makers)
    for (const given of ['shop.db', null, 5]) expect(fateOf(() => maker(given as never))).toBe('refused')
})

it('an optional package that does not load is an error that the model reads, or that its maker throws', async () => {
  const cause = Object.assign(new Error('no'), { code: 'ERR_MODULE_NOT_FOUND' })
  const lost = declarePackage('lost', () => Promise.reject(cause))
  const message = 'needs the package lost, which is not installed. Add it: npm install lost.'
  const called: unknown = await loadInCall(lost, 'a').catch((error: unknown) => error)
  expect(called).toBeInstanceOf(ToolError)
  expect(called).toMatchObject({ message: `The tool a ${message}`, cause: { cause } })
  for (const make of [() => lost.require('The tool a'), () => requirePackage('The tool a', 'lost')])
    expect(make).toThrow(new ConfigurationError(`The tool a ${message}`))
  expect(() => requirePackage('The tool a', 'vitest')).not.toThrow()
})
