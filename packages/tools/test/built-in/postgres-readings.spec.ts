// What the tool for Postgres makes of values, refusals and many calls, without a server; `postgres-query.spec.ts` has one.
import { getEventListeners } from 'node:events'
import { sqlQuery } from '@tallystick/tools/sql-query'
import { describe, expect, it } from 'vitest'
import { ConnectionGate, readFailure, toJsonValue } from '../../src/built-in/sql-query/postgres.ts'
import { endingOf } from '../one-call.ts'

describe('a value that Postgres sends as text', () => {
  it.each([
    ['a boolean', 16, 't', true],
    ['a boolean', 16, 'f', false],
    ['bytes', 17, '\\x00ff10', { base64: 'AP8Q', bytes: 3 }],
    ['no bytes', 17, '\\x', { base64: '', bytes: 0 }],
    ['a bigint', 20, '7', 7],
    ['the largest exact integer', 20, '9007199254740991', 9_007_199_254_740_991],
    ['an integer beyond it', 20, '9007199254740992', '9007199254740992'],
    ['a small integer', 21, '-3', -3],
    ['an integer', 23, '42', 42],
    ['an object id', 26, '16384', 16_384],
    ['a real', 700, '0.5', 0.5],
    ['a double', 701, '1.25', 1.25],
    ['no number', 701, 'NaN', 'NaN'],
    ['an infinity', 701, '-Infinity', '-Infinity'],
    ['a numeric', 1700, '189.50', '189.50'],
    ['JSON', 3802, '{"n": 1}', '{"n": 1}'],
    ['text', 25, 't', 't'],
  ])('given %s (%i), when it is %s, then the model reads %j', (_what, type, text, value) => {
    expect(toJsonValue(type)(text)).toEqual(value)
  })
})

describe('the tool for Postgres', () => {
  it.each([
    ['no URL', 'shop'],
    ['another database', 'mysql://ada:swordfish@shop.example/a'],
    ['a URL of no host', 'postgres://ada:swordfish@[shop/a'],
    ['words around it', 'see postgres://ada:swordfish@shop.example/a'],
  ])('given %s, when it is made, then it says what it needs, and no password', (_what, connectionString) => {
    expect(() => sqlQuery({ connectionString, name: 'look' })).toThrow(
      /^The tool look has no database: its connectionString cannot be read\. Give one such as postgres:[^;]*$/,
    )
    expect(() => sqlQuery({ connectionString })).not.toThrow('swordfish')
  })

  it('given either name of the scheme, when it is made, then it is taken', () => {
    for (const scheme of ['postgres', 'postgresql'])
      expect(sqlQuery({ connectionString: `${scheme}://shop.example/a` }).name).toBe('sql_query')
  })

  it('given a statement with a NUL character, when it is called, then nothing is run', async () => {
    const tool = sqlQuery({ connectionString: 'postgres://shop.example/a' })
    expect(await endingOf(tool, { sql: 'select \0' })).toEqual({
      ...{ outcome: 'failed', text: 'The statement holds a NUL character. Nothing was run.' },
    })
  })

  it('given a limit for statements, when its server hangs, then a call has time to wait for another one, each with time to connect and to stop', () => {
    const tool = sqlQuery({ connectionString: 'postgres://shop.example/a', timeoutMs: 700 })
    expect(tool.timeoutMs).toBe(2 * (10_000 + 2 * 3_000 + 700))
  })
})

const said = (code: string, more = {}): object => ({ severity: 'ERROR', code, message: 'it is so', ...more })

describe('what Postgres refuses', () => {
  it.each(['57014', '25P03', '25P04'])(
    'given %s, when a statement ends with it, then it was stopped by a time limit',
    (code) => {
      expect(readFailure(said(code))).toEqual({ reply: { kind: 'timed_out' }, asksForTables: false })
    },
  )

  it('given a lock that is not to be had in time, when a statement ends with it, then it did not run', () => {
    const why = 'what it reads was locked for too long by another one'
    expect(readFailure(said('55P03')).reply).toEqual({ kind: 'not_started', why })
  })

  it.each(['42601', '25006', '0A000', '42P11', '42P03'])(
    'given %s, when a statement ends with it, then the model reads which statements can be run',
    (code) => {
      const message =
        'Postgres says: it is so. Only one statement that reads can be run: SELECT, WITH … SELECT, VALUES, TABLE, or EXPLAIN [ANALYZE] [VERBOSE] of these. Nothing was changed.'
      expect(readFailure(said(code)).reply).toEqual({ kind: 'failed', message })
    },
  )

  it.each(['42P01', '42703', '42883', '42704', '42601'])(
    'given %s, when a statement ends with it, then the tables are listed for the model',
    (code) => {
      expect(readFailure(said(code)).asksForTables).toBe(true)
    },
  )

  it('given a hint, when a statement ends with it, then the model reads it, and no tables', () => {
    expect(readFailure(said('22012', { hint: 'Divide by something.' }))).toEqual({
      reply: { kind: 'failed', message: 'Postgres says: it is so. Divide by something.' },
      asksForTables: false,
    })
    expect(readFailure(said('22012')).reply).toMatchObject({ message: 'Postgres says: it is so.' })
  })

  it.each([
    ['28P01', 'The database does not let this tool in (28P01).'],
    ['3D000', 'The database does not let this tool in (3D000).'],
    ['53300', 'The database cannot be used now (53300).'],
    ['57P01', 'The database cannot be used now (57P01).'],
  ])(
    'given %s, when it does not serve the tool, then no name of a host or user is shown',
    (code, message) => {
      expect(readFailure(said(code, { message: 'role "ada" at db.example' }))).toEqual({
        reply: { kind: 'failed', message },
        asksForTables: false,
      })
    },
  )

  it.each([
    [{ code: 'ECONNREFUSED', message: 'connect ECONNREFUSED 10.0.0.7:5432' }, ' (ECONNREFUSED)'],
    [{ code: 'ERR_TLS_CERT:db.example', message: 'no' }, ''],
    [{ code: 'at ENOTFOUND', message: 'no' }, ''],
    [new Error('Connection terminated unexpectedly'), ''],
  ])('given %j, when the way to it is broken, then its code is shown at most', (error, code) => {
    expect(readFailure(error)).toEqual({
      reply: {
        kind: 'failed',
        message: `The database cannot be reached, or the connection to it was lost${code}.`,
      },
      asksForTables: false,
    })
  })
})

describe('calls that wait for a connection', () => {
  const never = new AbortController().signal
  /** Whether a call waits, has a place, or has left. */
  async function stateOf(call: Promise<(() => void) | undefined>): Promise<string> {
    const waits = new Promise<string>((resolve) => void setImmediate(() => resolve('waits')))
    return await Promise.race([call.then((leave) => (leave === undefined ? 'has left' : 'is in')), waits])
  }

  it('given two places, when three calls come, then the third waits for the first place that is given back', async () => {
    const gate = new ConnectionGate(2)
    const calls = [gate.enter(never), gate.enter(never), gate.enter(never)]
    expect(await Promise.all(calls.map(stateOf))).toEqual(['is in', 'is in', 'waits'])
    ;(await calls[1])?.()
    expect(await stateOf(calls[2]!)).toBe('is in')
  })

  it('given calls that wait, when places are given back, then in the order in which they came, each place once', async () => {
    const gate = new ConnectionGate(1)
    const [first, second, third] = [gate.enter(never), gate.enter(never), gate.enter(never)]
    ;(await first)?.()
    expect([await stateOf(second), await stateOf(third)]).toEqual(['is in', 'waits'])
    ;(await second)?.()
    ;(await third)?.()
    const later = [gate.enter(never), gate.enter(never)]
    expect(await Promise.all(later.map(stateOf))).toEqual(['is in', 'waits'])
  })

  it('given a call that is cancelled, when it waits or comes, then it takes no place', async () => {
    const gate = new ConnectionGate(1)
    const first = await gate.enter(never)
    const [one, two] = [new AbortController(), new AbortController()]
    const [leaving, staying] = [gate.enter(one.signal), gate.enter(two.signal)]
    one.abort()
    expect([await stateOf(leaving), await stateOf(staying)]).toEqual(['has left', 'waits'])
    expect(await stateOf(gate.enter(one.signal))).toBe('has left')
    first?.()
    expect(await stateOf(staying)).toBe('is in')
  })

  it('given a call that has its place, when it is cancelled, then it gives the place back once', async () => {
    const gate = new ConnectionGate(1)
    const first = await gate.enter(never)
    const abort = new AbortController()
    const held = gate.enter(abort.signal)
    const waiting = gate.enter(never)
    first?.()
    const leave = await held
    abort.abort()
    expect(await stateOf(waiting)).toBe('waits')
    leave?.()
    expect(await stateOf(waiting)).toBe('is in')
    expect(getEventListeners(abort.signal, 'abort')).toEqual([])
  })
})
