import type { Cancel, Clock, Host } from './clock.ts'
import type { TextDigest } from '../vocabulary/values/digest.ts'
import { processOfHost } from './host-process.ts'

/**
 * THE ONE FILE THAT TOUCHES THE HOST: time, timers, randomness and the place where stray errors are reported, as every
 * JavaScript host has them, and SHA-256 where the host has that. Everything else gets them handed in.
 */
interface Globals {
  setTimeout(callback: () => void, delayMs: number): { unref?(): void } | number
  clearTimeout(timer: { unref?(): void } | number | undefined): void
  readonly performance?: { now(): number }
  readonly console?: { error(...data: unknown[]): void }
  /** Node, Bun and Deno have it; pages and workers do not. */
  readonly process?: Parameters<typeof processOfHost>[0]
}

type HostHash = (algorithm: 'sha256', text: string) => string

const globals = globalThis as unknown as Globals

/** The longest delay that a host's timer takes; longer ones are waited for in pieces. */
const MAX_DELAY = 2 ** 31 - 1

function schedule(...[delayMs, callback, purpose]: Parameters<Clock['schedule']>): Cancel {
  let timer: ReturnType<Globals['setTimeout']> | undefined
  const arm = (leftMs: number): void => {
    const piece = Math.min(leftMs, MAX_DELAY)
    timer = globals.setTimeout(() => (leftMs > piece ? arm(leftMs - piece) : callback()), Math.max(0, piece))
    if (purpose === 'upkeep' && typeof timer === 'object') timer.unref?.()
  }
  arm(delayMs)
  return () => globals.clearTimeout(timer)
}

/** The host that the program runs in. */
export const defaultHost: Host = {
  clock: {
    now: () => Date.now(),
    schedule,
    // Only asked whether it is there: Node loads eleven modules when it is first read.
    ...('performance' in globals && { even: () => globals.performance?.now() ?? 0 }),
  },
  random: () => Math.random(),
  report: (error, what) => globals.console?.error(`Tallystick: ${what}:`, error),
  process: processOfHost(globals.process),
}

/** A name that nothing else has: not by the host's `random`, with which tests make the ids of runs. */
export function uniqueName(): string {
  return [1, 2].map(() => Math.floor(Math.random() * 2 ** 40).toString(36)).join('')
}

/** SHA-256 of a text, in hex, by a function of the host that answers at once; `undefined` where it has none. */
export function digestOfHost(): TextDigest | undefined {
  const crypto = globals.process?.getBuiltinModule?.('node:crypto') as
    | { readonly hash?: HostHash }
    | undefined
  const hash = crypto?.hash
  return hash && ((text) => hash('sha256', text))
}
