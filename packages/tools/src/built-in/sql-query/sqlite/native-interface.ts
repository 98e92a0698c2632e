import { ConfigurationError } from '@tallystick/core'

/** What the native part of better-sqlite3 calls of Node. Where it is missing, the process would end without a word. */
const nativeInterfaceMin = 10

/**
 * Refuses a Node that cannot load better-sqlite3, before it tries. `versions` are those of the process; a host that names
 * no version of Node-API is left to answer for itself.
 */
export function requireNativeInterface(
  subject: string,
  versions: { readonly node?: string; readonly napi?: string } = process.versions,
): void {
  const { node = 'an unknown version', napi } = versions
  if (napi === undefined || Number(napi) >= nativeInterfaceMin) return
  throw new ConfigurationError(
    `${subject} needs Node 22.14 or newer, and this is Node ${node}: its Node-API ${napi} is older than the ${nativeInterfaceMin} that better-sqlite3 calls, and the process would crash. Install a newer Node, such as the current LTS from nodejs.org.`,
  )
}
