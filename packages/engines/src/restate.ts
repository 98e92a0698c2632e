import { createServer, type ServerHttp2Session } from 'node:http2'
import type { ListenOptions } from 'node:net'
import type { RunId } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/internal'
import * as restate from '@restatedev/restate-sdk'
import type { Ingress } from '@restatedev/restate-sdk-clients'
import { Driving } from './driving.ts'
import type { Drive, Engine, EngineWorker, Wake } from './engine.ts'

export interface RestateEngineOptions {
  /** Takes the wakes: `connect({ url })` of `@restatedev/restate-sdk-clients`. */
  readonly ingress: Ingress
  /** Where a worker listens for Restate, as `server.listen` of Node takes it. Default: the port 9080 of `127.0.0.1`. */
  readonly listen?: ListenOptions | undefined
  /**
   * A worker that starts tells the admin API at `admin` that it can be reached at `url`; by default, where it listens. Without this
   * option, register it by `restate deployments register`.
   */
  readonly register?: { readonly admin: string; readonly url?: string } | undefined
  /** Makes the endpoint of a worker, with your logger, identity keys, and services beside ours. Default: `restate.endpoint()`. */
  readonly endpoint?: (() => restate.RestateEndpoint) | undefined
  readonly services?: RestateServicesOptions | undefined
}

export interface RestateServicesOptions {
  /** The virtual objects are called by this name and `Wakes` or `Drives`. Default: `Tallystick`. */
  readonly name?: string | undefined
  /**
   * Options of the virtual objects in Restate's own words. Defaults: `abortTimeout: { hours: 24 }`, which bounds a drive,
   * `journalRetention: { hours: 1 }`, and no end of retries.
   */
  readonly options?: restate.ObjectOptions | undefined
}

const { anyFunction, anyObject, fields, maybe, filledText } = option
const engineOptions = fields<RestateEngineOptions>({
  ingress: anyObject,
  listen: maybe(anyObject),
  register: maybe(anyObject),
  endpoint: maybe(anyFunction),
  services: maybe(anyObject),
})
const servicesOptions = fields<RestateServicesOptions>({ name: maybe(filledText), options: maybe(anyObject) })

/** A wake on its way through Restate. */
interface SentWake extends Wake {
  /** How many drives in a row were rejected. */
  readonly failures?: number
}

/** The drive of a run that has not begun. */
interface NextDrive {
  readonly at: number
  /** The id of its invocation. */
  readonly id: string
  readonly wake: SentWake
}

/** The worker stops: the wake is delivered to another one, and no failure is counted. */
class HandedBack extends Error {}

/**
 * Delivers wakes by virtual objects of [Restate](https://restate.dev): one of each run that merges its wakes, and one of each key
 * that drives.
 */
export function restateEngine(options: RestateEngineOptions): Engine {
  requireOptions('restateEngine', engineOptions, options)
  const { ingress, listen = {}, register, endpoint = restate.endpoint, services = {} } = options
  const { name = 'Tallystick' } = services
  return {
    name: 'restate',
    capabilities: new Set(['exclusivePerKey']),
    async wake(wake) {
      await ingress.objectSendClient<WakesHandlers>({ name: `${name}Wakes` }, wake.runId).wake(wake)
    },
    async work(drive, { concurrency }) {
      const slots = new Slots(concurrency)
      const driving = new Driving()
      const driveHere: Drive = async (wake, signal) => {
        try {
          return await driving.run(signal, (either) => drive(wake, either))
        } catch (error) {
          throw driving.isStopping ? new HandedBack() : error
        }
      }
      const served = endpoint()
      for (const service of makeServices(driveHere, services, slots)) served.bind(service)
      const server = createServer(served.http2Handler())
      const sessions = new Set<ServerHttp2Session>()
      server.on('session', (session) => {
        sessions.add(session)
        session.once('close', () => sessions.delete(session))
      })
      const { host = '127.0.0.1' } = listen
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject).listen({ port: 9080, ...listen, host }, resolve)
      })
      const stop: EngineWorker['stop'] = async (graceMs) => {
        const closed = new Promise<unknown>((resolve) => server.close(resolve))
        // Restate sends no more on a session that closes, and takes what has begun there to its end.
        for (const session of sessions) session.close()
        driving.stop()
        slots.close()
        const timers = [
          setTimeout(() => driving.giveUp(), graceMs),
          setTimeout(() => sessions.forEach((session) => session.destroy()), graceMs + flushMs),
        ]
        await closed
        timers.forEach(clearTimeout)
      }
      try {
        const address = server.address() as { readonly port: number }
        if (register) await registerAt(register.admin, register.url ?? `http://${host}:${address.port}`)
      } catch (error) {
        await stop(0)
        throw error
      }
      return { stop }
    },
  }
}

/** How long Restate may take to hear of what has ended before a worker that stops leaves. */
const flushMs = 1_000

/**
 * Makes the virtual objects that deliver wakes, for an endpoint that you serve yourself: `restate.endpoint()`, or that of a
 * function on Lambda, Cloudflare or Deno.
 */
export function restateServices(
  drive: Drive,
  options: RestateServicesOptions = {},
): restate.VirtualObjectDefinition<string, unknown>[] {
  requireOptions('restateServices', servicesOptions, options)
  return makeServices(drive, options)
}

interface WakesHandlers {
  readonly wake: (ctx: restate.ObjectContext, wake: SentWake) => Promise<void>
  readonly begin: (ctx: restate.ObjectContext) => Promise<SentWake | null>
}

interface DrivesHandlers {
  readonly drive: (ctx: restate.ObjectContext, runId: RunId) => Promise<void>
}

function makeServices(
  drive: Drive,
  given: RestateServicesOptions,
  slots?: Slots,
): restate.VirtualObjectDefinition<string, unknown>[] {
  const { name = 'Tallystick' } = given
  const [wakes, drives] = [{ name: `${name}Wakes` }, { name: `${name}Drives` }]
  const options: restate.ObjectOptions = {
    abortTimeout: { hours: 24 },
    journalRetention: { hours: 1 },
    retryPolicy: {
      initialInterval: 100,
      exponentiationFactor: 2,
      maxInterval: 10_000,
      maxAttempts: 2 ** 31 - 1,
    },
    ...given.options,
  }

  const wakesHandlers: WakesHandlers = {
    /** Plans the next drive of the run, or plans it earlier. */
    async wake(ctx, { at, ...sent }) {
      const next = await ctx.get<NextDrive>('next')
      const now = await ctx.date.now()
      const due = Math.max(at ?? now, now)
      const wake = { ...sent, ...next?.wake }
      if (next && next.at <= due) return ctx.set('next', { ...next, wake })
      if (next) ctx.cancel(restate.InvocationIdParser.fromString(next.id))
      const { key = wake.runId } = wake
      const delay = restate.rpc.sendOpts<RunId>({ delay: due - now })
      const { invocationId } = ctx.objectSendClient<DrivesHandlers>(drives, key).drive(wake.runId, delay)
      ctx.set('next', { at: due, id: await invocationId, wake })
    },
    /** Takes the wakes of a drive that begins: those that come from now on lead to another one. */
    async begin(ctx) {
      const next = await ctx.get<NextDrive>('next')
      ctx.clear('next')
      return next?.wake ?? null
    },
  }

  const drivesHandlers: DrivesHandlers = {
    async drive(ctx, runId) {
      const { attemptCompletedSignal: signal } = ctx.request()
      await slots?.enter(signal)
      const sent = await ctx.objectClient<WakesHandlers>(wakes, runId).begin()
      if (!sent) return
      const { failures = 0, ...wake } = sent
      const again = await ctx.run('drive', async (): Promise<SentWake | null> => {
        try {
          await drive(wake, signal)
          return null
        } catch (error) {
          if (error instanceof HandedBack) return sent
          ctx.console.warn(`The drive of ${runId} was rejected, and is tried again.`, error)
          return { ...wake, failures: failures + 1, at: Date.now() + Math.min(1_000 * 2 ** failures, 60_000) }
        }
      })
      // A new wake, not an attempt of this one: it holds up no other run of its key.
      if (again) ctx.objectSendClient<WakesHandlers>(wakes, runId).wake(again)
    },
  }
  return [
    restate.object({ ...wakes, handlers: wakesHandlers, options }),
    restate.object({ ...drives, handlers: drivesHandlers, options }),
  ]
}

/** The runs that a worker may drive at a time. */
class Slots {
  readonly #waiting: PromiseWithResolvers<void>[] = []
  #isClosed = false
  #free: number

  constructor(free: number) {
    this.#free = free
  }

  /** Takes a slot, until the signal is aborted. */
  async enter(left: AbortSignal): Promise<void> {
    if (this.#isClosed) throw createStoppedError()
    if (this.#free > 0) this.#free--
    else {
      const turn = Promise.withResolvers<void>()
      this.#waiting.push(turn)
      await turn.promise
    }
    if (left.aborted) this.#leave()
    left.throwIfAborted()
    left.addEventListener('abort', () => this.#leave(), { once: true })
  }

  #leave(): void {
    const next = this.#waiting.shift()
    if (next) next.resolve()
    else this.#free++
  }

  /** Sends back those that wait, and all that come. */
  close(): void {
    this.#isClosed = true
    for (const { reject } of this.#waiting.splice(0)) reject(createStoppedError())
  }
}

function createStoppedError(): Error {
  return new Error('The worker stops.')
}

async function registerAt(admin: string, uri: string): Promise<void> {
  const answer = await fetch(`${admin}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri, force: true }),
  })
  if (!answer.ok) {
    throw new Error(`Restate does not take the worker at ${uri}: ${answer.status} ${await answer.text()}`)
  }
}
