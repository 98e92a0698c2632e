// Optional peers of the other packages: loaded when they are needed first, by errors that name the line which installs them.
import { ConfigurationError } from './errors.ts'

/** `user` is what needs the package, such as `mcpTools()`. */
export interface OptionalPackage<Module> {
  /** Throws `ConfigurationError` if the host can tell at once that the package is missing. */
  require(user: string): void
  /** Loads the package once. Rejects with a `ConfigurationError`. */
  load(user: string): Promise<Module>
}

/** The package that has an optional peer. */
export interface PeerUser {
  readonly name: string
  /** Its own `import.meta.resolve`. */
  readonly resolve: (name: string) => unknown
}

/** `load` imports the package by its literal name, so that bundlers see it. */
export function declarePackage<Module>(
  { name: own, resolve }: PeerUser,
  name: string,
  load: () => Promise<Module>,
): OptionalPackage<Module> {
  let loading: Promise<Module> | undefined
  return {
    require(user) {
      try {
        // In a bundle not even the own package resolves by name: there only loading shows whether another is missing.
        resolve(`${own}/package.json`)
      } catch {
        return
      }
      try {
        resolve(name)
      } catch (error) {
        // Other hosts refuse names that they cannot resolve by other errors: there only loading tells.
        if (isMissing(error)) throw createMissingPackageError(user, name, error)
      }
    },
    async load(user) {
      loading ??= load()
      try {
        return await loading
      } catch (error) {
        loading = undefined
        throw createMissingPackageError(user, name, error)
      }
    },
  }
}

export function createMissingPackageError(user: string, name: string, cause: unknown): ConfigurationError {
  const what = isMissing(cause) ? 'is not installed' : 'could not be loaded'
  return new ConfigurationError(
    `${user} needs the package ${name}, which ${what}. Add it: npm install ${name}.`,
    {
      cause,
    },
  )
}

function isMissing(error: unknown): boolean {
  const code = readCode(error)
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
}

/** The code of an error of the system, such as `ENOENT`. */
export function readCode(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}

/** The parts of Node's `process` that tell whether better-sqlite3 can be loaded. */
interface NativeHost {
  readonly platform: string
  readonly arch: string
  readonly versions: { readonly node?: string; readonly napi?: string }
}

/** The Node-API version that better-sqlite3 calls. Without it the process would end without a word. */
const nativeInterfaceMin = 10

/** Refuses a Node that cannot load better-sqlite3, before it tries. A host that names no version of Node-API is not checked. */
export function requireNativeInterface(subject: string, { versions }: Pick<NativeHost, 'versions'>): void {
  const { node = 'an unknown version', napi } = versions
  if (napi === undefined || Number(napi) >= nativeInterfaceMin) return
  throw new ConfigurationError(
    `${subject} needs Node 22.14 or newer, and this is Node ${node}: its Node-API ${napi} is older than the ${nativeInterfaceMin} that better-sqlite3 calls, and the process would crash. Install a newer Node, such as the current LTS from nodejs.org.`,
  )
}

/**
 * The error for a native part of better-sqlite3 that is missing, or was not built for this machine; `undefined` for
 * any other error. The error of Node quotes paths, and says nothing of what to do.
 */
export function explainNativeFailure(
  subject: string,
  error: unknown,
  { platform, arch, versions }: NativeHost,
): ConfigurationError | undefined {
  const code = readCode(error)
  if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_DLOPEN_FAILED') return undefined
  const what = code === 'MODULE_NOT_FOUND' ? 'is missing' : 'could not be loaded'
  return new ConfigurationError(
    `${subject} needs the native part of better-sqlite3, which ${what} here (${platform}, ${arch}, Node ${versions.node}). Reinstall the package on this machine; if it has none for it, build it: npm explore better-sqlite3 -- npm run build-release.`,
    { cause: error },
  )
}
