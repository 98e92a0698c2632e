import { ConfigurationError } from '@tallystick/core'
import type * as pg from 'pg'
import type * as undici from 'undici'
import { ToolError } from './define/outcome.ts'

/**
 * An optional peer, which is loaded when it is needed first. Its errors name the line that installs it, and what needs it,
 * such as `mcpTools()`.
 */
export interface OptionalPackage<Module> {
  /** Throws `ConfigurationError` if the host can tell at once that the package is missing. */
  require(user: string): void
  /** Loads the package once. Rejects with a `ConfigurationError`. */
  load(user: string): Promise<Module>
  /** Loads the package once, for a call of a tool. Rejects with a `ToolError`, which the model reads. */
  loadInCall(tool: string): Promise<Module>
}

/** `load` imports the package by its literal name, so that bundlers see it. */
export function declarePackage<Module>(name: string, load: () => Promise<Module>): OptionalPackage<Module> {
  let loading: Promise<Module> | undefined
  const loadOr = async (toError: (cause: unknown) => Error): Promise<Module> => {
    loading ??= load()
    try {
      return await loading
    } catch (error) {
      loading = undefined
      throw toError(error)
    }
  }
  return {
    require(user) {
      if (!isInBundle()) requirePackage(user, name)
    },
    load: (user) => loadOr((cause) => new ConfigurationError(describeMissing(user, name, cause), { cause })),
    loadInCall: (tool) =>
      loadOr((cause) => new ToolError(describeMissing(`The tool ${tool}`, name, cause), { cause })),
  }
}

/** Refuses what needs a package that no bundle can hold, and that is not installed. Throws `ConfigurationError`. */
export function requirePackage(user: string, name: string): void {
  try {
    resolvePackage(name)
  } catch (error) {
    throw new ConfigurationError(describeMissing(user, name, error), { cause: error })
  }
}

function resolvePackage(name: string): void {
  if (typeof import.meta.resolve === 'function') import.meta.resolve(name)
  // Asked for, not imported: what every tool needs shares a file with this, and browsers have no such module.
  else
    process
      .getBuiltinModule('node:module')
      .createRequire(import.meta.url)
      .resolve(name)
}

/** In a bundle not even the own package resolves by name: there only loading shows whether another is missing. */
function isInBundle(): boolean {
  try {
    resolvePackage('@tallystick/tools/package.json')
    return false
  } catch {
    return true
  }
}

/** The code of an error of the system, such as `ENOENT`. */
export function readCode(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}

function describeMissing(user: string, name: string, cause: unknown): string {
  const code = readCode(cause)
  const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
  const what = isMissing ? 'is not installed' : 'could not be loaded'
  return `${user} needs the package ${name}, which ${what}. Add it: npm install ${name}.`
}

/** The Node-API version that better-sqlite3 calls. Without it the process would end without a word. */
const nativeInterfaceMin = 10

/**
 * Refuses a Node that cannot load better-sqlite3, before it tries. `versions` are those of the process; a host that names no
 * version of Node-API is not checked.
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
 * The error for a native part of better-sqlite3 that is missing, or was not built for this machine; `undefined` for
 * any other error. The error of Node quotes paths, and says nothing of what to do.
 */
export function explainNativeFailure(subject: string, error: unknown): ConfigurationError | undefined {
  const code = readCode(error)
  if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_DLOPEN_FAILED') return undefined
  const what = code === 'MODULE_NOT_FOUND' ? 'is missing' : 'could not be loaded'
  return new ConfigurationError(
    `${subject} needs the native part of better-sqlite3, which ${what} here (${process.platform}, ${process.arch}, Node ${process.versions.node}). Reinstall the package on this machine; if it has none for it, build it: npm explore better-sqlite3 -- npm run build-release.`,
    { cause: error },
  )
}

/** The driver of Postgres. */
export const pgPackage: OptionalPackage<typeof pg> = declarePackage('pg', () => import('pg'))

/** The client that makes the requests. */
export const undiciPackage: OptionalPackage<typeof undici> = declarePackage('undici', () => import('undici'))

/** Throws `ConfigurationError` for what is not the address of a database. Its message must not repeat it, and with it the password. */
export function requireConnectionString(subject: string, connectionString: string): void {
  if (/^postgres(?:ql)?:\/\//.test(connectionString) && URL.canParse(connectionString)) return
  throw new ConfigurationError(
    `${subject} has no database: its connectionString cannot be read. Give one such as postgres://user@host:5432/database, with special characters of the password percent-encoded.`,
  )
}
