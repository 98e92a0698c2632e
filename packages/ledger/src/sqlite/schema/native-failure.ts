import { ConfigurationError } from '@tallystick/core'

/**
 * What the user reads where the native part of better-sqlite3 is missing, or was not built for this machine; `undefined` for
 * any other error. The error of Node quotes paths, and says nothing of what to do.
 */
export function nativeFailure(error: unknown): ConfigurationError | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_DLOPEN_FAILED') return undefined
  const what = code === 'MODULE_NOT_FOUND' ? 'is missing' : 'could not be loaded'
  return new ConfigurationError(
    `A SQLite file needs the native part of better-sqlite3, which ${what} here (${process.platform}, ${process.arch}, Node ${process.versions.node}). Install the package anew on this machine; if it brings none for it, build it: npm explore better-sqlite3 -- npm run build-release.`,
    { cause: error },
  )
}
