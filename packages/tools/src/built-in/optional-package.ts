import { ConfigurationError } from '@tallystick/core'
import { ToolError } from '../execution/tool-error.ts'

/**
 * An optional peer, which is loaded when it is needed first. Its errors name the line that installs it, and what needs it,
 * such as `mcpTools()`.
 */
export interface OptionalPackage<Module> {
  /** Throws `ConfigurationError` where the host can tell at once that the package is missing. */
  require(user: string): void
  /** Loads the package once. Rejects with a `ConfigurationError`. */
  load(user: string): Promise<Module>
  /** Loads the package once, for a call of a tool. Rejects with a `ToolError`, which the model reads. */
  loadInCall(tool: string): Promise<Module>
}

/** `load` imports the package by its literal name, so that bundlers see it. */
export function optionalPackage<Module>(name: string, load: () => Promise<Module>): OptionalPackage<Module> {
  let loading: Promise<Module> | undefined
  const loadOr = async (errorOf: (cause: unknown) => Error): Promise<Module> => {
    loading ??= load()
    try {
      return await loading
    } catch (error) {
      loading = undefined
      throw errorOf(error)
    }
  }
  return {
    require(user) {
      if (!isInBundle()) requirePackage(user, name)
    },
    load: (user) => loadOr((cause) => new ConfigurationError(missingText(user, name, cause), { cause })),
    loadInCall: (tool) =>
      loadOr((cause) => new ToolError(missingText(`The tool ${tool}`, name, cause), { cause })),
  }
}

/** Refuses what needs a package that no bundle can hold, and that is not installed. Throws `ConfigurationError`. */
export function requirePackage(user: string, name: string): void {
  try {
    resolvePackage(name)
  } catch (error) {
    throw new ConfigurationError(missingText(user, name, error), { cause: error })
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

/** A bundle holds these modules where not even their own package has a name: there only loading tells whether another is missing. */
function isInBundle(): boolean {
  try {
    resolvePackage('@tallystick/tools/package.json')
    return false
  } catch {
    return true
  }
}

function missingText(user: string, name: string, cause: unknown): string {
  const what = isMissing(cause) ? 'is not installed' : 'could not be loaded'
  return `${user} needs the package ${name}, which ${what}. Add it: npm install ${name}.`
}

function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
}
