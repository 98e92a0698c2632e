import { digestOf } from '@tallystick/core/vocabulary'
import { RefusedRequestError } from '../http/problem.ts'
import type { Principal } from './principal.ts'

/**
 * Identifies a caller among those that a server knows: by its name and its subjects, since two tenants may each have an
 * Ann Smith. Its sessions and agents are left out: a session that it has just begun must not make it another caller.
 */
export function callerId({ name, sees }: Principal): string {
  const subjects = sees === 'everything' ? undefined : sees.subjects
  const listed = subjects === undefined || typeof subjects === 'function' ? null : [...subjects].sort()
  return digestOf([name, listed])
}

/** Returns the key under which a request takes effect once. Keys of different callers never collide. */
export function callerKey(principal: Principal, given: string | undefined): string | undefined {
  if (given === undefined) return undefined
  if (/^[\x21-\x7e]{1,200}$/.test(given)) return `http:${callerId(principal)}:${given}`
  throw new RefusedRequestError(
    400,
    'malformed',
    'Idempotency-Key has to be 1 to 200 visible ASCII characters, without a space.',
  )
}
