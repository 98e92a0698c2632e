import { RefusedRequestError } from '../http/problem.ts'
import type { Principal } from './principal.ts'

/** Returns the key under which a request takes effect once. Keys of different principals never collide. */
export function callerKey({ name }: Principal, given: string | undefined): string | undefined {
  if (given === undefined) return undefined
  if (/^[\x21-\x7e]{1,200}$/.test(given)) return `http:${encodeURIComponent(name)}:${given}`
  throw new RefusedRequestError(
    400,
    'malformed',
    'Idempotency-Key has to be 1 to 200 visible ASCII characters, without a space.',
  )
}
