// What a tool needs before its work begins is late: the model reads that the work did not begin, not that it was slow.
import { execFileSync } from 'node:child_process'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { httpFetch } from '@tallystick/tools/http-fetch'
import { sqlQuery } from '@tallystick/tools/sql-query'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { runStatement } from '../../src/built-in/sql-query/sqlite-statement.ts'
import { endingOf } from '../one-call.ts'
import { HeldTimers } from './held-timers.ts'
import { serve } from './loopback-server.ts'
import { createShopDatabase, openToWrite } from './shop-database.ts'
import { temporaryFolder } from '../../../../scripts/testing/temporary-folder.ts'

const didNotRun = (why: string): object => ({
  outcome: 'failed',
  text: `The statement did not run: ${why}. The statement is not the cause: make the same call again, or continue without it.`,
})

describe('a statement on SQLite', () => {
  it('whose process is not ready in time did not run', async () => {
    const folder = temporaryFolder()
    // Opening it waits for a writer, who never comes.
    const path = join(folder, 'pipe.db')
    execFileSync('mkfifo', [path])
    const timers = new HeldTimers()
    const ending = endingOf(sqlQuery({ path, timers, timeoutMs: 700 }), { sql: 'SELECT 1' })
    await timers.fire(30_700)
    expect(await ending).toEqual(
      didNotRun('the process for it was not ready within 30700 ms, as on a machine with too much to do'),
    )
    expect(timers.count).toBe(0)
  })

  it('starts when the file is open, and never where it is refused or there is no file', () => {
    const shop = createShopDatabase()
    onTestFinished(() => shop.remove())
    const startsOf = (path: string, sql: string): readonly [number, string] => {
      let starts = 0
      const bounds = { maxRows: 1, maxBytes: 500, timeoutMs: 1_000, lockTimeoutMs: 1 }
      const { kind } = runStatement({ path, sql, parameters: [], ...bounds }, () => void starts++)
      return [starts, kind]
    }
    expect(startsOf(shop.path, 'SELECT 1')).toEqual([1, 'rows'])
    expect(startsOf(shop.path, 'SELECT nothing')).toEqual([1, 'failed'])
    expect(startsOf(shop.path, 'DROP TABLE items')).toEqual([0, 'failed'])
    expect(startsOf(join(shop.folder, 'none.db'), 'SELECT 1')).toEqual([0, 'failed'])
    const writer = openToWrite(shop.path)
    writer.exec('BEGIN EXCLUSIVE')
    expect(startsOf(shop.path, 'SELECT 1')).toEqual([0, 'not_started'])
    writer.close()
  })

  it('that a writer keeps from its file did not run, after the time of a lock and not that of a statement', async () => {
    const shop = createShopDatabase()
    onTestFinished(() => shop.remove())
    const writer = openToWrite(shop.path)
    onTestFinished(() => writer.close())
    writer.exec('BEGIN EXCLUSIVE')
    const timers = new HeldTimers()
    const options = { path: shop.path, timers, timeoutMs: 3_600_000 }
    const ending = endingOf(sqlQuery({ ...options, lockTimeoutMs: 1 }), { sql: 'SELECT name FROM items' })
    expect(await ending).toEqual(didNotRun('another process kept the database locked for 1 ms'))
    writer.exec('ROLLBACK')
    expect(await endingOf(sqlQuery({ ...options, lockTimeoutMs: 1 }), { sql: 'SELECT 1' })).toMatchObject({
      outcome: 'success',
    })
  })
})

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => void (await Promise.all(closing.splice(0).map((close) => close()))))

/** What a server of Postgres says to a client that is let in: that it is, by which process, and that it waits. */
const letsIn = Buffer.from('5200000008000000004b0000000c00000001000000025a0000000549', 'hex')
/** What it says to a statement that it has stopped at its own limit, and then that it waits. */
const stops = Buffer.concat([
  errorOf('SERROR\0VERROR\0C57014\0Mcanceling statement due to statement timeout\0\0'),
  Buffer.from('5a0000000549', 'hex'),
])

function errorOf(fields: string): Buffer {
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(4 + fields.length, 1)
  return Buffer.concat([head, Buffer.from(fields)])
}

/** A server of Postgres as far as a late one is: it says nothing beside the answers that it is given. */
async function postgres(answers: { readonly start?: Buffer; readonly begin?: Buffer }) {
  const sockets = new Set<Socket>()
  const asked: string[] = []
  const waiting = new Map<string, () => void>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.on('data', (data) => {
      const said = data.toString('latin1')
      if (said.includes('pg_cancel_backend')) return void socket.destroy()
      const kind = said.includes('begin transaction') ? 'begin' : 'start'
      asked.push(kind)
      waiting.get(kind)?.()
      if (answers[kind]) socket.write(answers[kind])
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => void server.close(resolve))
  })
  const connectionString = `postgres://reader@127.0.0.1:${(server.address() as AddressInfo).port}/shop`
  return {
    connectionString,
    asked,
    /** Resolves when a client has asked for it. */
    isAsked: (kind: 'start' | 'begin') =>
      asked.includes(kind)
        ? Promise.resolve()
        : new Promise<void>((resolve) => void waiting.set(kind, resolve)),
  }
}

describe('a statement on Postgres', () => {
  const late = didNotRun('the database was not ready for it within 10000 ms')

  it.each([
    ['that lets no client in', {}, 'start'],
    ['that begins no transaction', { start: letsIn }, 'begin'],
  ] as const)('%s in time did not run', async (_what, answers, moment) => {
    const { connectionString, isAsked } = await postgres(answers)
    const timers = new HeldTimers()
    const ending = endingOf(sqlQuery({ connectionString, timers, timeoutMs: 700 }), { sql: 'select 1' })
    await isAsked(moment)
    expect(timers.count).toBe(1)
    await timers.fire(10_000)
    expect(await ending).toEqual(late)
    expect(timers.count).toBe(0)
  })

  it('whose transaction the server stops before it began did not run', async () => {
    const { connectionString } = await postgres({ start: letsIn, begin: stops })
    const timers = new HeldTimers()
    const tool = sqlQuery({ connectionString, timers, timeoutMs: 700 })
    expect(await endingOf(tool, { sql: 'select 1' })).toEqual(didNotRun('the database was too slow to begin'))
    expect(timers.count).toBe(0)
  })

  it('for which no connection is free in time did not run, and the next one gets it', async () => {
    const { connectionString, asked, isAsked } = await postgres({})
    const timers = new HeldTimers()
    const tool = sqlQuery({ connectionString, timers, timeoutMs: 700, maxConnections: 1 })
    const first = endingOf(tool, { sql: 'select 1' })
    await isAsked('start')
    const second = endingOf(tool, { sql: 'select 2' })
    await timers.fire(10_000 + 2 * 3_000 + 700)
    expect(await second).toEqual(
      didNotRun('no connection was free for it within 16700 ms, since other calls used all of them'),
    )
    expect(asked).toEqual(['start'])
    await timers.fire(10_000)
    expect(await first).toEqual(late)
    expect(timers.count).toBe(0)
  })
})

describe('a request over HTTP', () => {
  const unknown = (): Promise<never> => new Promise(() => {})

  it('that reaches no server in time was not sent', async () => {
    const timers = new HeldTimers()
    const looked = Promise.withResolvers<void>()
    const resolve = (): Promise<never> => {
      looked.resolve()
      return unknown()
    }
    const tool = httpFetch({ methods: ['POST'], timers, timeoutMs: 900, resolve })
    const ending = endingOf(tool, { url: 'http://slow.example/', body: '{}' })
    await looked.promise
    await timers.fire(900)
    expect(await ending).toEqual({
      outcome: 'failed',
      text: 'There was no connection to the server within 900 ms. Nothing was sent. Try again later.',
    })
    expect(timers.count).toBe(0)
  })

  it('that is led to where nothing is reached in time was sent, and says so', async () => {
    const timers = new HeldTimers()
    const server = await serve((_request, response) =>
      response.writeHead(302, { location: 'http://slow.example/' }).end(),
    )
    closing.push(() => server.close())
    const looked = Promise.withResolvers<void>()
    const resolve = (): Promise<never> => {
      looked.resolve()
      return unknown()
    }
    const tool = httpFetch({ allow: [server.place], timers, timeoutMs: 900, resolve })
    const ending = endingOf(tool, { url: server.origin })
    await looked.promise
    await timers.fire(900)
    expect(await ending).toEqual({
      outcome: 'timed_out',
      text: 'There was no connection within 900 ms to where the answer redirects. Try again later.',
    })
  })
})
