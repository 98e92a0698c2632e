import { ConfigurationError, ProviderError } from '@tallystick/core'

/** An optional peer, which is loaded when it is needed first. */
export interface OptionalPackage<Module> {
  /** Throws `ConfigurationError`, with the line that installs the package, where the host can tell at once that it is missing. */
  require(maker: string): void
  /** Loads the package once. Rejects with a `ProviderError` that names the line that installs it. */
  load(maker: string): Promise<Module>
}

/** `load` imports the package by its literal name, so that bundlers see it. */
export function optionalPackage<Module>(name: string, load: () => Promise<Module>): OptionalPackage<Module> {
  let loading: Promise<Module> | undefined
  return {
    require: (maker) => {
      try {
        if (resolvesPackages()) import.meta.resolve(name)
      } catch (error) {
        // Other hosts refuse names that they cannot resolve by other errors: there only loading tells.
        if (isMissing(error)) throw missingPackage(maker, name, error)
      }
    },
    load: async (maker) => {
      loading ??= load()
      try {
        return await loading
      } catch (error) {
        loading = undefined
        const cause = missingPackage(maker, name, error)
        throw new ProviderError(
          { class: 'invalid_request', retryable: false, message: cause.message },
          { cause },
        )
      }
    },
  }
}

/** The error of a package that is not installed, with the line that installs it. */
export function missingPackage(maker: string, name: string, cause: unknown): ConfigurationError {
  const what = isMissing(cause) ? 'is not installed' : 'could not be loaded'
  return new ConfigurationError(
    `${maker}() needs the package ${name}, which ${what}. Add it: npm install ${name}.`,
    {
      cause,
    },
  )
}

/** A bundle holds this module where not even its own package has a name: there only loading tells whether another is missing. */
function resolvesPackages(): boolean {
  try {
    import.meta.resolve('@tallystick/providers/package.json')
    return true
  } catch {
    return false
  }
}

function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
}
