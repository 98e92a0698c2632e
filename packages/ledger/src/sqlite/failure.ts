import {
  LedgerDamagedError,
  LedgerUnavailableError,
  ConfigurationError,
  TallystickError,
} from '@tallystick/core'

/** SQLite's own code of a failure, such as `SQLITE_BUSY`; `undefined` for anything else that was thrown. */
export function sqliteCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== 'SqliteError') return undefined
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/**
 * Codes that say that the file is not what was written: broken pages; a schema that lacks what our queries name, which
 * its version promises; a trigger that stops an append which the run's own head allows.
 */
const damage = /^SQLITE_(CORRUPT|NOTADB|IOERR_SHORT_READ|IOERR_CORRUPTFS|IOERR_DATA|FORMAT|ERROR$|CONSTRAINT)/

const remedies: readonly (readonly [RegExp, string])[] = [
  [/^SQLITE_BUSY/, 'Another process has held it for too long. Stop that process, or raise busyTimeoutMs.'],
  [/^SQLITE_FULL/, 'The disk is full. Make room, then resume the run.'],
  [
    /^SQLITE_READONLY_DIRECTORY/,
    'It was left in the middle of work and its folder cannot be written. Copy the file and those with its name and ' +
      '-wal or -shm beside it to a folder that can, and open the copy.',
  ],
  [/^SQLITE_READONLY/, 'It cannot be written. Open it with readOnly, or allow writing.'],
  [/^SQLITE_(CANTOPEN|PERM|AUTH)/, 'It cannot be opened. Look at its path and permissions.'],
  [/^SQLITE_IOERR/, 'The disk reports an error. Look at the disk, then resume the run.'],
]

/** What happened as an error of ours: damage, or a store that is not available. Errors of ours pass through. */
export function ledgerFailure(error: unknown, path: string): TallystickError {
  if (error instanceof TallystickError) return error
  const native = nativeFailure(error)
  if (native) return native
  const reason = error instanceof Error ? error.message : String(error)
  const code = sqliteCode(error)
  if (code !== undefined && damage.test(code)) {
    return new LedgerDamagedError(
      `The ledger ${path} is damaged: ${reason}. What it says cannot be trusted. Run verify on it, and restore a copy.`,
      { cause: error },
    )
  }
  const remedy = remedies.find(([codes]) => codes.test(code ?? ''))?.[1] ?? 'Nothing was written.'
  return new LedgerUnavailableError(
    `The ledger ${path} is not available: ${reason}${code ? ` (${code})` : ''}. ${remedy}`,
    {
      cause: error,
    },
  )
}

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
