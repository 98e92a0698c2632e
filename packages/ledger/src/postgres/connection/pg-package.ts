import { ConfigurationError } from '@tallystick/core'
import type { driver } from './driver-types.ts'

/** The driver of Postgres, as far as it is used. */
export type Pg = Pick<typeof driver, 'Client' | 'Pool' | 'types'>

let loading: Promise<Pg> | undefined

/** Throws a `ConfigurationError`, with the line that installs the driver, where the host can tell at once that it is missing. */
export function requirePg(): void {
  try {
    if (resolvesPackages) import.meta.resolve('pg')
  } catch (error) {
    // Other hosts refuse names that they cannot resolve by other errors: there only loading tells.
    if (isMissing(error)) throw missingPg(error)
  }
}

/** Loads the driver once, by its literal name, so that bundlers see it. Rejects with a `ConfigurationError`. */
export async function loadPg(): Promise<Pg> {
  loading ??= import('pg')
  try {
    return await loading
  } catch (error) {
    loading = undefined
    throw missingPg(error)
  }
}

/** Within a bundle the package may be there and yet not be found by its name: there only loading tells. */
const resolvesPackages =
  typeof import.meta.resolve === 'function' &&
  /\/postgres\/connection\/pg-package\.[jt]s$/.test(import.meta.url)

function missingPg(cause: unknown): ConfigurationError {
  const what = isMissing(cause) ? 'is not installed' : 'could not be loaded'
  return new ConfigurationError(
    `postgresLedger() needs the package pg, which ${what}. Add it: npm install pg.`,
    {
      cause,
    },
  )
}

function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
}
