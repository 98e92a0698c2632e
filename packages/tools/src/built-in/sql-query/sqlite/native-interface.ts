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

/**
 * What the user reads where the native part of better-sqlite3 is missing, or was not built for this machine; `undefined` for
 * any other error. The error of Node quotes paths, and says nothing of what to do.
 */
export function nativeFailure(subject: string, error: unknown): ConfigurationError | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_DLOPEN_FAILED') return undefined
  const what = code === 'MODULE_NOT_FOUND' ? 'is missing' : 'could not be loaded'
  return new ConfigurationError(
    `${subject} needs the native part of better-sqlite3, which ${what} here (${process.platform}, ${process.arch}, Node ${process.versions.node}). Install the package anew on this machine; if it brings none for it, build it: npm explore better-sqlite3 -- npm run build-release.`,
    { cause: error },
  )
}
