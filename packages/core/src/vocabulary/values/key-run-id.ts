import { digestOf } from './digest.ts'
import type { RunId } from './ids.ts'

/**
 * The run that an idempotency key begins: derived, so that every process that is given the key finds the same run, and
 * each store takes its first event once. A UUIDv8: it tells no time.
 */
export function runIdOfKey(key: string): RunId {
  const digest = digestOf(['run of key', key])
  const variant = '89ab'[Number.parseInt(digest.slice(31, 32), 16) % 4]
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(12, 15)}-${variant}${digest.slice(15, 18)}-${digest.slice(18, 30)}` as RunId
}
