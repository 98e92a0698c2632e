import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** An IP address of a host; `family` is 4 or 6. */
export interface HostAddress {
  readonly address: string
  readonly family: number
}

/** Finds all addresses of a name. Rejects when it has none. */
export type Resolve = (hostname: string) => Promise<readonly HostAddress[]>

/** Asks the host, as any other program on it does. */
export const hostResolve: Resolve = (hostname) => lookup(hostname, { all: true, verbatim: true })

/**
 * Why an address is not one of the public internet, as in `loopback`; `undefined` for one that is. What is not
 * understood is not public, and of IPv6 only 2000::/3 is, so that addresses which wrap others (::127.0.0.1) are not.
 */
export function notPublic(address: string): string | undefined {
  if (isIP(address) === 0) return 'unreadable'
  const parsed = ipaddr.process(address)
  const range = parsed.range()
  if (range !== 'unicast') return range
  return parsed instanceof ipaddr.IPv6 && !parsed.match(globalUnicast, 3) ? 'reserved' : undefined
}

const globalUnicast = ipaddr.IPv6.parse('2000::')
