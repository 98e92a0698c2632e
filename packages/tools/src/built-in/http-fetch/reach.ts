import { isIP } from 'node:net'
import { ConfigurationError } from '@tallystick/core'
import { ToolError } from '../../execution/tool-error.ts'
import { type HostAddress, notPublic, type Resolve } from './addresses.ts'

/** A host and a port. `host` is a name or an address, the latter without brackets. */
export interface Place {
  readonly host: string
  readonly port: number
}

/** Where to connect to: a place, and the addresses that its host has. */
export interface Target extends Place {
  readonly addresses: readonly HostAddress[]
}

/** What may be reached, and how its address is found. */
export interface ReachPolicy {
  readonly origins: ReadonlySet<string> | undefined
  /** Keys as `keyOf` makes them. */
  readonly allowed: ReadonlySet<string>
  readonly connectTo: ReadonlyMap<string, Place>
  readonly resolve: Resolve
}

/** Reads what may be reached from the options of the tool. Throws `ConfigurationError` for what cannot be read. */
export function reachPolicy(
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
    allowed: new Set((options.allow ?? []).map((text) => keyOf(place('allow', text)))),
    connectTo: new Map(
      connections.map(([from, to]) => [keyOf(place('connectTo', from)), place('connectTo', to)]),
    ),
    resolve,
  }
}

/** Reads an origin, as in `https://api.example.com`. Throws `ConfigurationError` for anything else. */
export function readOrigin(toolName: string, option: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && (url.origin === text || `${url.origin}/` === text) && isWeb(url)) return url.origin
  throw new ConfigurationError(
    `In ${option} of the tool ${toolName}, "${text}" is no origin. Write scheme and host, and a port unless it is the scheme's own, as in https://api.example.com.`,
  )
}

/** The URL that a model or a redirect asks for. Throws `ToolError` for one that may not be asked for. */
export function readUrl(text: string, { origins }: ReachPolicy, base?: URL): URL {
  const url = URL.canParse(text, base?.href) ? new URL(text, base) : undefined
  if (!url)
    throw new ToolError(
      'That is no URL. Give a whole one, as in https://example.com/page. Nothing was requested.',
    )
  if (!isWeb(url)) throw refusal(url, 'only http: and https: URLs can be fetched')
  if (url.username !== '' || url.password !== '')
    throw refusal(url, 'a URL with a user or password cannot be fetched')
  if (origins && !origins.has(url.origin))
    throw refusal(url, `only ${[...origins].join(', ')} can be reached`)
  return url
}

/**
 * Returns the addresses to connect to for a host and port. Throws a `ToolError` if one of them may not be reached;
 * rejects as `resolve` does for a name without an address.
 */
export async function targetOf(asked: Place, policy: ReachPolicy): Promise<Target> {
  const instead = policy.connectTo.get(keyOf(asked))
  const place = instead ?? asked
  const family = isIP(place.host)
  const addresses = family ? [{ address: place.host, family }] : await policy.resolve(place.host)
  const refused =
    addresses.length === 0 ? 'unknown' : addresses.map(({ address }) => notPublic(address)).find(Boolean)
  if (refused === undefined || instead || policy.allowed.has(keyOf(asked))) return { ...place, addresses }
  throw new ToolError(
    `${keyOf(asked)} cannot be reached: its address is ${refused}, and only public addresses may be reached. Nothing was requested.`,
  )
}

function refusal(url: URL, why: string): ToolError {
  // A host is all that is named: the rest may hold what was not meant for anyone.
  return new ToolError(`${url.protocol}//${url.host} is refused: ${why}. Nothing was requested from it.`)
}

function isWeb(url: URL): boolean {
  return url.protocol === 'http:' || url.protocol === 'https:'
}

function keyOf({ host, port }: Place): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function readPlace(toolName: string, option: string, text: string): Place {
  const [, host = '', port = ''] = /^(\[[0-9a-fA-F:.]+\]|[^\s:/@?#[\]\\]+):(\d{1,5})$/.exec(text) ?? []
  const url = `http://${host}`
  if (host !== '' && Number(port) > 0 && Number(port) < 65_536 && URL.canParse(url)) {
    // As a URL writes it, so that 0x7f.1 and LOCALHOST are what they will be when they are asked for.
    return { host: new URL(url).hostname.replaceAll(/^\[|\]$/g, ''), port: Number(port) }
  }
  throw new ConfigurationError(
    `In ${option} of the tool ${toolName}, "${text}" is no host with a port. Write both, as in localhost:3000 or [::1]:80.`,
  )
}
