import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { ConfigurationError } from '@tallystick/core'
import { type KnownSecrets, createKnownSecrets, secretLengthMin } from '@tallystick/core/internal'
import ipaddr from 'ipaddr.js'
import type * as undici from 'undici'
import { ToolError } from '../../define/outcome.ts'

interface HostAddress {
  readonly address: string
  readonly family: number
}

/** Finds all addresses of a name. Rejects when it has none. */
export type Resolve = (hostname: string) => Promise<readonly HostAddress[]>

/** Asks the host, as any other program on it does. */
export const resolveByHost: Resolve = (hostname) => lookup(hostname, { all: true, verbatim: true })

/**
 * Why an address is not one of the public internet, as in `loopback`; `undefined` for one that is. What is not
 * understood is not public, and of IPv6 only 2000::/3 is, so that addresses which wrap others (::127.0.0.1) are not.
 */
export function findNonPublic(address: string): string | undefined {
  if (isIP(address) === 0) return 'unreadable'
  const parsed = ipaddr.process(address)
  const range = parsed.range()
  if (range !== 'unicast') return range
  return parsed instanceof ipaddr.IPv6 && !parsed.match(globalUnicast, 3) ? 'reserved' : undefined
}

const globalUnicast = ipaddr.IPv6.parse('2000::')

/** A host and a port. `host` is a name or an address, the latter without brackets. */
export interface Place {
  readonly host: string
  readonly port: number
}

/** The hosts that may be reached, and how their addresses are found. */
export interface ReachPolicy {
  readonly origins: ReadonlySet<string> | undefined
  /** Keys as `keyOf` makes them. */
  readonly allowed: ReadonlySet<string>
  readonly connectTo: ReadonlyMap<string, Place>
  readonly resolve: Resolve
}

/** Reads what may be reached from the options of the tool. Throws `ConfigurationError` for what cannot be read. */
export function createReachPolicy(
  toolName: string,
  options: {
    readonly origins?: readonly string[] | undefined
    readonly allow?: readonly string[] | undefined
    readonly connectTo?: Readonly<Record<string, string>> | undefined
  },
  resolve: Resolve,
): ReachPolicy {
  const place = (option: string, text: string): Place => readPlace(toolName, option, text)
  const connections = Object.entries(options.connectTo ?? {})
  return {
    origins:
      options.origins && new Set(options.origins.map((origin) => readOrigin(toolName, 'origins', origin))),
    allowed: new Set((options.allow ?? []).map((text) => toHostKey(place('allow', text)))),
    connectTo: new Map(
      connections.map(([from, to]) => [toHostKey(place('connectTo', from)), place('connectTo', to)]),
    ),
    resolve,
  }
}

/** Reads an origin, as in `https://api.example.com`. Throws `ConfigurationError` for anything else. */
function readOrigin(toolName: string, option: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && (url.origin === text || `${url.origin}/` === text) && isWeb(url)) return url.origin
  throw new ConfigurationError(
    `In ${option} of the tool ${toolName}, "${text}" is not an origin. Write scheme and host, and a port unless it is the scheme's own, as in https://api.example.com.`,
  )
}

/** The URL that a model or a redirect asks for. Throws `ToolError` for one that may not be asked for. */
export function readUrl(text: string, { origins }: ReachPolicy, base?: URL): URL {
  const url = URL.canParse(text, base?.href) ? new URL(text, base) : undefined
  if (!url)
    throw new ToolError(
      'That is not a URL. Give a complete one, as in https://example.com/page. Nothing was requested.',
    )
  if (!isWeb(url)) throw createRefusal(url, 'only http: and https: URLs can be fetched')
  if (url.username !== '' || url.password !== '')
    throw createRefusal(url, 'a URL with a user or password cannot be fetched')
  if (origins && !origins.has(url.origin))
    throw createRefusal(url, `only ${[...origins].join(', ')} can be reached`)
  return url
}

/**
 * Returns the addresses to connect to for a host and port. Throws a `ToolError` if one of them may not be reached;
 * rejects as `resolve` does for a name without an address.
 */
async function readTarget(
  asked: Place,
  policy: ReachPolicy,
): Promise<Place & { readonly addresses: readonly HostAddress[] }> {
  const instead = policy.connectTo.get(toHostKey(asked))
  const place = instead ?? asked
  const family = isIP(place.host)
  const addresses = family ? [{ address: place.host, family }] : await policy.resolve(place.host)
  const refused =
    addresses.length === 0 ? 'unknown' : addresses.map(({ address }) => findNonPublic(address)).find(Boolean)
  if (refused === undefined || instead || policy.allowed.has(toHostKey(asked))) return { ...place, addresses }
  throw new ToolError(
    `${toHostKey(asked)} cannot be reached: its address is ${refused}, and only public addresses may be reached. Nothing was requested.`,
  )
}

function createRefusal(url: URL, why: string): ToolError {
  // Names only the host: the rest may contain a secret.
  return new ToolError(`${url.protocol}//${url.host} is refused: ${why}. Nothing was requested from it.`)
}

function isWeb(url: URL): boolean {
  return url.protocol === 'http:' || url.protocol === 'https:'
}

function toHostKey({ host, port }: Place): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function readPlace(toolName: string, option: string, text: string): Place {
  const [, host = '', port = ''] = /^(\[[0-9a-fA-F:.]+\]|[^\s:/@?#[\]\\]+):(\d{1,5})$/.exec(text) ?? []
  const url = `http://${host}`
  if (host !== '' && Number(port) > 0 && Number(port) < 65_536 && URL.canParse(url)) {
    // In the form of a URL, so that 0x7f.1 and LOCALHOST equal the hosts of later requests.
    return { host: new URL(url).hostname.replaceAll(/^\[|\]$/g, ''), port: Number(port) }
  }
  throw new ConfigurationError(
    `In ${option} of the tool ${toolName}, "${text}" is not a host with a port. Write both, as in localhost:3000 or [::1]:80.`,
  )
}

/**
 * Opens connections only to what may be reached. The check is in the connector because there every request ends up,
 * redirects and literal addresses included, and because what was checked is then what is connected to: a name that
 * answers differently a moment later changes nothing. Calls `onConnecting` with true when a
 * connection is begun, and with false when it is there.
 */
export function createGuardedAgent(
  { Agent, buildConnector }: Pick<typeof undici, 'Agent' | 'buildConnector'>,
  policy: ReachPolicy,
  connectMs: number,
  onConnecting: (isConnecting: boolean) => void,
): undici.Agent {
  return new Agent({
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect({ hostname, port, ...options }, callback) {
      onConnecting(true)
      const asked = {
        host: hostname.replaceAll(/^\[|\]$/g, ''),
        port: Number(port) || (options.protocol === 'https:' ? 443 : 80),
      }
      void readTarget(asked, policy).then(
        (target) => {
          const connect = buildConnector({
            timeout: connectMs,
            allowH2: false,
            // The addresses that were checked.
            lookup: (_hostname, { all }, answer) => {
              const [first] = target.addresses
              if (all) answer(null, [...target.addresses])
              else if (first) answer(null, first.address, first.family)
              else answer(new Error('no address'), '')
            },
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

/** Headers by the origin that they are for. */
export type OriginHeaders = Readonly<Record<string, Readonly<Record<string, string>>>>

/** The headers for each origin, and the secrets in them that must not be shown. */
export interface HeaderPolicy {
  readonly byOrigin: ReadonlyMap<string, Readonly<Record<string, string>>>
  readonly secrets: KnownSecrets
}

/** Headers that are not secrets, and would make a mess of results if they were masked. */
const alwaysOpen = ['accept', 'accept-language', 'cache-control', 'content-type', 'user-agent']
const reserved = new Set('connection content-length host keep-alive transfer-encoding upgrade'.split(' '))

/**
 * Reads the headers that a tool was given; `openHeaders` names those whose value is not secret. Throws `ConfigurationError`,
 * which names no value, also for a secret that is too short to be masked.
 */
export function createHeaderPolicy(
  toolName: string,
  headers: OriginHeaders,
  openHeaders: readonly string[],
): HeaderPolicy {
  const open = new Set([...alwaysOpen, ...openHeaders.map((name) => name.toLowerCase())])
  const byOrigin = new Map<string, Readonly<Record<string, string>>>()
  const secrets: string[] = []
  for (const [origin, given] of Object.entries(headers)) {
    byOrigin.set(readOrigin(toolName, 'headers', origin), given)
    for (const [name, value] of Object.entries(given)) {
      assertHeader(toolName, name, value)
      if (open.has(name.toLowerCase())) continue
      if (cutCore(value).length < secretLengthMin)
        throw new ConfigurationError(
          `The header ${JSON.stringify(name)} of the tool ${toolName} has a secret of less than ${secretLengthMin} characters: masking it in results would mask other data, too. ` +
            `Use a longer one, or, if its value is not secret, name the header in openHeaders.`,
        )
      // The parts of it that a server may repeat alone: the token, name and password of Basic, the values of a cookie.
      const basic = decodeBasic(value)
      secrets.push(
        value,
        cutToken(value),
        cutCore(value),
        ...(basic ? [basic] : []),
        ...value.split(/[\s;,=]/),
      )
    }
  }
  return { byOrigin, secrets: createKnownSecrets(secrets) }
}

/** Puts as many asterisks in place of every secret, so that no other byte moves. */
export function maskForms(text: string, { secrets }: HeaderPolicy): string {
  return secrets.struckFrom(text, (secret) => '*'.repeat(Buffer.byteLength(secret)))
}

/**
 * Returns the part of a value that is the secret: without the scheme, and of Basic the password, or the name if there
 * is not a password.
 */
function cutCore(value: string): string {
  const basic = decodeBasic(value)
  if (basic === undefined) return cutToken(value)
  const colon = basic.indexOf(':')
  return basic.slice(colon + 1) || basic.slice(0, Math.max(0, colon))
}

function cutToken(value: string): string {
  return value.slice(value.lastIndexOf(' ') + 1)
}

function decodeBasic(value: string): string | undefined {
  return /^basic /i.test(value) ? Buffer.from(cutToken(value), 'base64').toString() : undefined
}

function assertHeader(toolName: string, name: string, value: string): void {
  const wrong = (why: string): ConfigurationError =>
    new ConfigurationError(`The header ${JSON.stringify(name)} of the tool ${toolName} ${why}.`)
  if (reserved.has(name.toLowerCase()))
    throw wrong('belongs to the connection and cannot be set: leave it out')
  if (value === '') throw wrong('has no value: give a string, or leave it out')
  try {
    new Headers().set(name, value)
  } catch {
    throw wrong('has a name or value that HTTP cannot carry: use plain characters in one line')
  }
}
