import { createRequire } from 'node:module'
import { ConfigurationError } from '@tallystick/core'
import { ToolError } from '../execution/tool-error.ts'

/** An optional peer of a built-in tool, which is loaded at the first call. */
export interface OptionalPackage<Module> {
  /** Throws `ConfigurationError`, with the line that installs the package, where the host can tell at once that it is missing. */
  require(tool: string): void
  /** Loads the package once. Rejects with a `ToolError` that names the line that installs it. */
  load(tool: string): Promise<Module>
}

/** `load` imports the package by its literal name, so that bundlers see it. */
export function optionalPackage<Module>(name: string, load: () => Promise<Module>): OptionalPackage<Module> {
  let loading: Promise<Module> | undefined
  return {
    require(tool) {
      if (!isInBundle) requirePackage(tool, name)
    },
    async load(tool) {
      loading ??= load()
      try {
        return await loading
      } catch (error) {
        loading = undefined
        throw new ToolError(missingText(tool, name, error))
      }
    },
  }
}

/** Refuses a tool whose package, which no bundle can hold, is not installed. Throws `ConfigurationError`. */
export function requirePackage(tool: string, name: string): void {
  try {
    if (typeof import.meta.resolve === 'function') import.meta.resolve(name)
    else createRequire(import.meta.url).resolve(name)
  } catch (error) {
    throw new ConfigurationError(missingText(tool, name, error), { cause: error })
  }
}

/** A bundle may hold the package and yet not resolve its name: there only loading tells. */
const isInBundle = !/\/built-in\/optional-package\.[jt]s$/.test(import.meta.url)

function missingText(tool: string, name: string, cause: unknown): string {
  const what = isMissing(cause) ? 'is not installed' : 'could not be loaded'
  return `The tool ${tool} needs the package ${name}, which ${what}. Add it: npm install ${name}.`
}

function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
}
