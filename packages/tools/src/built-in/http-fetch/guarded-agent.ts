import type { LookupFunction } from 'node:net'
import type { Agent, buildConnector } from 'undici'
import type { HostAddress } from './addresses.ts'
import { type ReachPolicy, targetOf } from './reach.ts'

/** What is needed of undici, which is loaded at the first call. */
interface Undici {
  readonly Agent: typeof Agent
  readonly buildConnector: typeof buildConnector
}

/**
 * Opens connections only to what may be reached. The check is in the connector because there every request ends up,
 * redirects and literal addresses included, and because what was checked is then what is connected to: a name that
 * answers differently a moment later changes nothing. Calls `onConnecting` with true when a
 * connection is begun, and with false when it is there.
 */
export function guardedAgent(
  undici: Undici,
  policy: ReachPolicy,
  connectMs: number,
  onConnecting: (isConnecting: boolean) => void,
): Agent {
  return new undici.Agent({
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect({ hostname, port, ...options }, callback) {
      onConnecting(true)
      const asked = {
        host: hostname.replaceAll(/^\[|\]$/g, ''),
        port: Number(port) || (options.protocol === 'https:' ? 443 : 80),
      }
      void targetOf(asked, policy).then(
        (target) => {
          const connect = undici.buildConnector({
            timeout: connectMs,
            allowH2: false,
            lookup: lookupOf(target.addresses),
          })
          connect({ ...options, hostname: target.host, port: String(target.port) }, (...made) => {
            if (made[0] === null) onConnecting(false)
            callback(...made)
          })
        },
        (error: Error) => callback(error, null),
      )
    },
  })
}

/** Answers a connection's look-up with the addresses that were checked. */
function lookupOf(addresses: readonly HostAddress[]): LookupFunction {
  return (_hostname, { all }, callback) => {
    const [first] = addresses
    if (all) return callback(null, [...addresses])
    return first ? callback(null, first.address, first.family) : callback(new Error('no address'), '')
  }
}
