import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { endpoint, type RestateEndpoint } from '@restatedev/restate-sdk'
import { connect } from '@restatedev/restate-sdk-clients'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { contractOf, type EngineHarness } from '@tallystick/engines/contract'
import type { EngineWorker, Wake } from '../src/engine.ts'
import { restateEngine, restateServices } from '../src/restate.ts'
import { findFreePort } from '../../../scripts/testing/free-port.ts'
import { findRestate, type RestateProcess, startRestate } from './support/restate-process.ts'
import { runId, watchDrives } from './support/watched-drive.ts'

const program = findRestate()
const hour = 3_600_000
let server: RestateProcess
let names = 0

interface Bed {
  readonly name: string
  readonly wake: (runId: string, more?: Omit<Wake, 'runId'>) => Promise<void>
  readonly work: (
    concurrency: number,
    port?: number,
  ) => Promise<EngineWorker & Pick<ReturnType<typeof watchDrives>, 'next' | 'begun'>>
  /** Resolves when Restate has nothing to do but for these runs, and for later. */
  readonly settled: (...driven: readonly string[]) => Promise<void>
}

const silent = (): RestateEndpoint => endpoint().setLogger(() => undefined)

function openBed(): Bed {
  const name = `Test${++names}`
  const on = (port: number) =>
    restateEngine({
      ingress: connect({ url: server.ingress }),
      listen: { port },
      register: { admin: server.admin },
      endpoint: silent,
      services: { name },
    })
  const engine = on(0)
  return {
    name,
    wake: (id, more) => engine.wake({ runId: runId(id), ...more }),
    async work(concurrency, port = 0) {
      const drives = watchDrives()
      const worker = await on(port).work(drives.drive, { concurrency })
      onTestFinished(() => worker.stop(0))
      return { ...drives, ...worker }
    },
    async settled(...driven) {
      const query = `SELECT target_service_key AS key FROM sys_invocation
        WHERE target_service_name LIKE '${name}%' AND status NOT IN ('completed', 'scheduled')`
      for (;;) {
        const rows = await ask(query)
        if (rows.every(({ key }) => driven.includes(key ?? ''))) return
      }
    },
  }
}

/** Asks Restate about its invocations, in SQL. */
async function ask(query: string): Promise<readonly Record<string, string>[]> {
  const answer = await fetch(`${server.admin}/query`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ query }),
  })
  const { rows } = (await answer.json()) as { rows: Record<string, string>[] }
  return rows
}

/** The server has the time of the machine. */
const inTime = (milliseconds: number): number => performance.timeOrigin + performance.now() + milliseconds

/** Its workers share an address. */
const harness: EngineHarness = {
  timerMs: 500,
  capabilities: new Set(['exclusivePerKey']),
  async open() {
    const name = `Test${++names}`
    const listen = { port: await findFreePort(), reusePort: true }
    const open = () =>
      restateEngine({
        ingress: connect({ url: server.ingress }),
        listen,
        register: { admin: server.admin },
        endpoint: silent,
        services: { name },
      })
    // Restate takes wakes once it knows the services.
    const worker = await open().work(watchDrives().drive, { concurrency: 1 })
    await worker.stop(0)
    return { engine: open(), another: () => Promise.resolve(open()), close: () => Promise.resolve() }
  },
}

describe.skipIf(program === undefined)('the engine on Restate', () => {
  beforeAll(async () => {
    server = await startRestate(program!)
  })
  afterAll(async () => {
    await server.end()
  })

  test('drives a run once more for all wakes that came while it was driven', async () => {
    const { wake, work, settled } = openBed()
    const worker = await work(4)
    await wake('a')
    const first = await worker.next()
    await Promise.all(Array.from({ length: 50 }, () => wake('a')))
    await settled('a')
    expect(worker.begun).toEqual(['a'])
    first.end()
    const again = await worker.next()
    again.end()
    await settled()
    expect(worker.begun).toEqual(['a', 'a'])
  })

  test('the earliest time wins, and carries how the run begins', async () => {
    const { wake, work, settled, name } = openBed()
    const worker = await work(4)
    const start = { agent: 'clerk', input: 'Hello' }
    await wake('a', { at: inTime(2 * hour), start })
    await wake('a', { at: inTime(hour) })
    await settled()
    expect(worker.begun).toEqual([])
    const planned = `SELECT id FROM sys_invocation WHERE target_service_name LIKE '${name}%' AND status = 'scheduled'`
    expect(await ask(planned)).toHaveLength(1)
    await wake('a', { at: inTime(300) })
    const call = await worker.next()
    expect(call.wake).toEqual({ runId: 'a', start })
    await wake('b')
    await wake('b', { at: inTime(hour) })
    const other = await worker.next()
    expect(other.wake.runId).toBe('b')
    call.end()
    other.end()
    await settled()
    expect(worker.begun).toEqual(['a', 'b'])
  })

  test('delivers a wake again whose drive was rejected, later each time, unless a new one comes', async () => {
    const { wake, work, settled } = openBed()
    const worker = await work(1)
    await wake('a')
    for (let round = 0; round < 2; round++) (await worker.next()).fail()
    ;(await worker.next()).fail()
    await settled()
    expect(worker.begun).toHaveLength(3)
    await wake('a')
    ;(await worker.next()).end()
    await settled()
    expect(worker.begun).toHaveLength(4)
  })

  test('drives runs of one key one at a time, and a rejected drive holds no others up', async () => {
    const { wake, work, settled } = openBed()
    const worker = await work(4)
    await wake('a', { key: 'session' })
    const first = await worker.next()
    await wake('b', { key: 'session' })
    await wake('other')
    const other = await worker.next()
    expect(other.wake.runId).toBe('other')
    first.fail()
    const second = await worker.next()
    expect(second.wake).toEqual({ runId: 'b', key: 'session' })
    for (const call of [other, second]) call.end()
    const again = await worker.next()
    expect(again.wake).toEqual({ runId: 'a', key: 'session' })
    again.end()
    await settled()
  })

  test('a worker that stops gives back what has not ended, and what waits for a place', async () => {
    const { wake, work, settled, name } = openBed()
    // What is not flushed in time goes to the next worker at the same address only.
    const port = await findFreePort()
    const worker = await work(2, port)
    for (const id of ['quick', 'slow']) await wake(id)
    const calls = [await worker.next(), await worker.next()]
    await wake('late')
    await settled('quick', 'slow', 'late')
    const stopped = worker.stop(0)
    expect(calls.every((call) => call.signal.aborted)).toBe(true)
    calls.find((call) => call.wake.runId === 'quick')!.end()
    await stopped
    const later = await work(2, port)
    const [one, two] = [await later.next(), await later.next()]
    expect([one.wake.runId, two.wake.runId].toSorted()).toEqual(['late', 'slow'])
    for (const call of [one, two]) call.end()
    await settled()
    expect(later.begun).toHaveLength(2)
    const delayed = `SELECT id FROM sys_invocation WHERE target_service_name LIKE '${name}%' AND scheduled_at IS NOT NULL`
    expect(await ask(delayed)).toEqual([])
  })

  test('the wake of a worker that was killed goes to the next one at its address', async () => {
    const { wake, work, settled, name } = openBed()
    const port = await findFreePort()
    const script = fileURLToPath(new URL('support/restate-child.ts', import.meta.url))
    const child = spawn(process.execPath, [script, server.ingress, server.admin, name, String(port)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const said = once(child.stdout, 'data')
    // The worker may not be registered yet.
    while (
      !(await wake('a').then(
        () => true,
        () => false,
      ))
    );
    expect(String((await said)[0])).toBe('a\n')
    child.kill('SIGKILL')
    await once(child, 'exit')
    const worker = await work(1, port)
    const call = await worker.next()
    expect(call.wake).toEqual({ runId: 'a' })
    call.end()
    await settled()
    expect(worker.begun).toEqual(['a'])
  })

  test('drives by services that the application serves itself', async () => {
    const { wake, name } = openBed()
    const drives = watchDrives()
    const own = silent()
    for (const service of restateServices(drives.drive, { name })) own.bind(service)
    const served = createHttp2Server(own.http2Handler()).listen(0, '127.0.0.1')
    await once(served, 'listening')
    onTestFinished(() => void served.close())
    const uri = `http://127.0.0.1:${(served.address() as AddressInfo).port}`
    await fetch(`${server.admin}/deployments`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ uri }),
    })
    await wake('a')
    const call = await drives.next()
    expect(call.wake).toEqual({ runId: 'a' })
    call.end()
  })

  test('says why a worker is not registered', async () => {
    const url = 'http://127.0.0.1:1'
    const engine = restateEngine({
      ingress: connect({ url: server.ingress }),
      listen: { port: 0 },
      register: { admin: server.admin, url },
      endpoint: silent,
    })
    await expect(engine.work(watchDrives().drive, { concurrency: 1 })).rejects.toThrow(
      `Restate does not take the worker at ${url}`,
    )
  })

  test.for(contractOf.engine(harness))('keeps: $promise', async ({ lacks, run }, { skip }) => {
    if (lacks !== undefined) skip(`it is not capable of ${lacks}`)
    await expect(run()).resolves.toBeUndefined()
  })
})
