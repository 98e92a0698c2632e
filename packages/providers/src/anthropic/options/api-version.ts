import type { AnthropicOptions } from './options.ts'

const header = 'anthropic-version'
/** The version that the official client sends. */
const clientVersion = '2026-10-21'
/** From this version on, the service refuses `temperature`, `top_p` and `top_k`. */
const withoutSampling = '2026-10-21'

/**
 * Whether the service takes `temperature`, `top_p` and `top_k`: by the API version that a call names in its headers, or
 * else by the one that its client names. Other clouds speak older versions, and so may a client that is not the vendor's.
 */
export function takesSampling({ headers, client }: Pick<AnthropicOptions, 'headers' | 'client'>): boolean {
  const spoken = versionIn(headers) ?? (client === undefined ? clientVersion : versionOf(client))
  return spoken === undefined || spoken < withoutSampling
}

/** The version that an official client for Anthropic's own service names; unknown of any other. */
function versionOf(client: object): string | undefined {
  if (!isOfficial(client)) return undefined
  const { defaultHeaders } = Reflect.get(client, '_options') ?? {}
  return versionIn(defaultHeaders) ?? clientVersion
}

/**
 * Whether it is a client of the official SDK's class for Anthropic's own service, of whatever copy: its class carries the
 * resources of that service, and inherits from the one that all clouds share and that names itself.
 */
function isOfficial(client: object): boolean {
  let prototype: unknown = Object.getPrototypeOf(client)
  while (typeof prototype === 'object' && prototype !== null) {
    const { constructor } = prototype
    const base: unknown = Object.getPrototypeOf(constructor)
    const isOwn = Object.hasOwn(constructor, 'Messages') && Object.hasOwn(constructor, 'Models')
    if (isOwn && typeof base === 'function' && Reflect.get(base, 'Anthropic') === base) return true
    prototype = Object.getPrototypeOf(prototype)
  }
  return false
}

function versionIn(headers: unknown): string | undefined {
  if (typeof headers !== 'object' || headers === null) return undefined
  if (headers instanceof Headers) return headers.get(header) ?? undefined
  const named = Object.entries(headers).find(([name]) => name.toLowerCase() === header)
  return typeof named?.[1] === 'string' ? named[1] : undefined
}
