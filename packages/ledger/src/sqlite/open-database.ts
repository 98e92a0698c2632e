import { existsSync, statfsSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, resolve } from 'node:path'
import {
  ConfigurationError,
  LedgerDamagedError,
  LedgerUnavailableError,
  TallystickError,
} from '@tallystick/core'
import {
  option,
  type Schema,
  requireOptions,
  createMissingPackageError,
  explainNativeFailure,
  readCode,
  requireNativeInterface,
} from '@tallystick/core/internal'
import { toMisreadError } from '../format/event-row.ts'
import { keyring, type Keyring } from '../format/keyring.ts'
import { deltaDelay } from '../store/open-ledger.ts'
import type BetterSqlite3 from 'better-sqlite3'
import type { Database } from 'better-sqlite3'
import { maxWalBytesUnlessGiven } from './log.ts'
import { applicationId, makeSchema, schemaVersion } from './schema.ts'

/** SQLite's own code of a failure, such as `SQLITE_BUSY`; `undefined` for anything else that was thrown. */
export function readSqliteCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== 'SqliteError') return undefined
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/**
 * Codes that say that the file is not what was written: broken pages; a schema that lacks what our queries name, which
 * its version promises; a trigger that stops an append which the run's own head allows.
 */
const damage = /^SQLITE_(CORRUPT|NOTADB|IOERR_SHORT_READ|IOERR_CORRUPTFS|IOERR_DATA|FORMAT|ERROR$|CONSTRAINT)/

/** Messages of SQLite about a statement that is wrong for any file: our fault. */
const faultyStatement =
  /syntax error|incomplete input|unrecognized token|too many SQL variables|Expression tree is too large/

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

/** better-sqlite3 throws a `TypeError` for a connection that is closed or busy. */
const isRefusedUse = /^(?:The|This) database connection is /

/** Converts any error: to damage, or to a store that is not available. A `TallystickError` stays as it is. */
export function toLedgerError(error: unknown, path: string): TallystickError {
  if (error instanceof TallystickError) return error
  const native = explainNativeFailure('A SQLite file', error, process)
  if (native) return native
  const reason = error instanceof Error ? error.message : String(error)
  const misread = isRefusedUse.test(reason) ? undefined : toMisreadError(error, `The ledger ${path}`)
  if (misread) return misread
  const code = readSqliteCode(error)
  const isFaulty = code === 'SQLITE_ERROR' && faultyStatement.test(reason)
  if (code !== undefined && damage.test(code) && !isFaulty) {
    return new LedgerDamagedError(
      `The ledger ${path} is damaged: ${reason}. What it says cannot be trusted. Run verify on it, and restore a copy.`,
      { cause: error },
    )
  }
  const remedy = isFaulty
    ? 'A statement of @tallystick/ledger is at fault, and not the file. Nothing was written. Report it.'
    : (remedies.find(([codes]) => codes.test(code ?? ''))?.[1] ?? 'Nothing was written.')
  return new LedgerUnavailableError(
    `The ledger ${path} is not available: ${reason}${code ? ` (${code})` : ''}. ${remedy}`,
    {
      cause: error,
    },
  )
}

export interface SqliteLedgerOptions {
  /** Only reads. The file has to exist, and may be read-only. */
  readonly readOnly?: boolean | undefined
  /**
   * Keys that encrypt the content of runs with a subject. Without them the ledger writes such runs in the clear, and
   * reads encrypted runs without their content; these cannot be continued.
   */
  readonly keys?: Keyring | undefined
  /**
   * How long to wait for the commit of another process, in milliseconds. Default: 5000.
   */
  readonly busyTimeoutMs?: number | undefined
  /**
   * The size of the write-ahead log, in bytes, above which it is truncated; 64 MiB if not given. A long read prevents
   * that, and the log grows until the read ends.
   */
  readonly maxWalBytes?: number | undefined
  /** How often `changes` looks for events that other processes wrote, in milliseconds. Default: 250. */
  readonly pollIntervalMs?: number | undefined
  /**
   * How long deltas of a reply may wait for further ones, in milliseconds, so that one event records them: 20 unless
   * given; with 0 each is recorded, and shown, as soon as it arrives. The first delta of a reply never waits.
   */
  readonly deltaDelayMs?: number | undefined
}

const { fields, maybe, milliseconds, trueOrFalse, valueThat } = option

const sqliteLedgerOptions: Schema = fields<SqliteLedgerOptions>(
  {
    readOnly: maybe(trueOrFalse),
    keys: maybe(keyring),
    busyTimeoutMs: maybe(
      valueThat(
        'a whole number of milliseconds from 0 to 2147483647',
        (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0x7fffffff,
      ),
    ),
    maxWalBytes: maybe(
      valueThat(
        'a whole number of bytes, at least 1',
        (value) => Number.isSafeInteger(value) && (value as number) >= 1,
      ),
    ),
    pollIntervalMs: maybe(milliseconds),
    deltaDelayMs: maybe(deltaDelay),
  },
  { timeout: 'busyTimeoutMs', keyring: 'keys' },
)

/** A connection to a ledger file. */
export interface OpenedDatabase {
  readonly database: Database
  /** Absolute. */
  readonly path: string
}

/**
 * Opens the file, or makes it. Whatever is refused is refused before anything is written or made. Throws
 * `LedgerUnavailableError`, `LedgerDamagedError` or `ConfigurationError`.
 */
export function openDatabase(name: string, options: SqliteLedgerOptions): OpenedDatabase {
  requireFilePath(name, 'sqliteLedger')
  requireOptions('sqliteLedger', sqliteLedgerOptions, options)
  requireNativeInterface('sqliteLedger', process)
  const path = resolve(name.trim())
  const { readOnly = false, busyTimeoutMs = 5000 } = options
  let database: Database | undefined
  try {
    const found = inspectFile(path)
    requireUsable(path, found, readOnly)
    if (!readOnly) requireLocal(path)
    const fileMustExist = found.kind !== 'nothing'
    database = openSqlite(path, { readonly: readOnly, fileMustExist, timeout: busyTimeoutMs })
    database.pragma('trusted_schema = off')
    // Removed content is overwritten, also where a page was when its rows moved.
    database.pragma('secure_delete = on')
    database.pragma('foreign_keys = on')
    if (!readOnly) prepareForWriting(database, path, options.maxWalBytes ?? maxWalBytesUnlessGiven)
    if (found.kind !== 'ledger') makeSchema(database)
    return { database, path }
  } catch (error) {
    database?.close()
    throw toLedgerError(error, path)
  }
}

function requireUsable(path: string, found: Found, readOnly: boolean): void {
  if (found.kind === 'ledger' && found.version > schemaVersion) {
    throw new LedgerUnavailableError(
      `The ledger ${path} has schema version ${found.version}, and this library knows versions up to ${schemaVersion}. ` +
        'Writing to it could lose what the newer version keeps. Update @tallystick/ledger.',
    )
  }
  if (!readOnly) return
  if (found.kind !== 'ledger') {
    const [what, hint] =
      found.kind === 'nothing'
        ? ['is not there', '']
        : ['is empty', ', and copy an open ledger together with its -wal file']
    throw new LedgerUnavailableError(
      `The ledger ${path} ${what}, and opening it for reading does not create one. Check the path${hint}.`,
      { reason: 'absent' },
    )
  }
}

/** The write-ahead log lives in memory that processes share, which machines do not. */
function requireLocal(path: string): void {
  const network = findNetworkFileSystem(dirname(path))
  if (network === undefined) return
  throw new LedgerUnavailableError(
    `The ledger ${path} lies on a network file system (${network}), where SQLite's log would be corrupted as soon as ` +
      'two machines use it. Keep the file on a local disk; opening it with readOnly is allowed.',
  )
}

function prepareForWriting(database: Database, path: string, maxWalBytes: number): void {
  const mode = database.pragma('journal_mode = wal', { simple: true })
  if (mode !== 'wal') {
    throw new LedgerUnavailableError(
      `The ledger ${path} cannot use a write-ahead log (its journal mode stays ${String(mode)}), without which a crash ` +
        'could lose what was acknowledged. Keep the file on a local disk, not on a network file system.',
    )
  }
  database.pragma('synchronous = full')
  // Where it exists (macOS), only this makes the drive itself write.
  database.pragma('fullfsync = on')
  database.pragma('checkpoint_fullfsync = on')
  // A log that is begun again is cut back to this size; a long burst would leave it large for ever.
  database.pragma(`journal_size_limit = ${maxWalBytes}`)
}

/** The smallest page that SQLite knows. */
const pageBytesMin = 512

/** A path leads to nothing yet, to an empty file, or to a ledger of some schema version. */
export type Found =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'blank' }
  | { readonly kind: 'ledger'; readonly version: number }

/**
 * Reads the file at the path without changing it, and refuses what cannot be a ledger: a folder, a path in a folder that
 * does not exist, a file that is not a database, a database of another application. Throws `LedgerUnavailableError`.
 */
function inspectFile(path: string): Found {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return requireFolder(path)
  if (!stats.isFile()) {
    throw new LedgerUnavailableError(
      `${path} is ${stats.isDirectory() ? 'a folder' : 'not a regular file'}, and a ledger is one file. Name the file.`,
    )
  }
  if (stats.size === 0) return { kind: 'blank' }
  // SQLite takes a file shorter than a page for one without content, and would write over it.
  if (stats.size < pageBytesMin) throw createForeignFileError(path, 'not a SQLite database')
  return identify(path)
}

/** Refuses values that are not paths, and paths that SQLite does not take for a file. Throws `ConfigurationError`. */
export function requireFilePath(path: unknown, subject: string): asserts path is string {
  const what = describeNoPath(path)
  if (what !== undefined) throw new ConfigurationError(`${subject} needs the path of a file, ${what}`)
}

function describeNoPath(path: unknown): string | undefined {
  if (path instanceof URL) return 'and was given a URL. Pass fileURLToPath(url).'
  if (typeof path !== 'string') return "and was given none. Name a file, as in 'runs.db'."
  const text = path.trim()
  if (/^postgres(ql)?:/i.test(text)) {
    return 'and was given the address of a Postgres database. Use postgresLedger({ connectionString }) of @tallystick/ledger/postgres.'
  }
  if (/^file:/i.test(text)) {
    return "and was given a file: URL, which would make a file of that name. Pass the path alone, as in 'runs.db'."
  }
  if (text !== '' && text !== ':memory:') return undefined
  return (
    'since a ledger that ends with its process cannot be resumed. ' +
    'Name a file, or use memoryLedger() where that is what you want.'
  )
}

function requireFolder(path: string): Found {
  const folder = statSync(dirname(path), { throwIfNoEntry: false })
  if (folder?.isDirectory()) return { kind: 'nothing' }
  throw new LedgerUnavailableError(
    `The folder of the ledger ${path} does not exist, so the file cannot be created. Create the folder first.`,
  )
}

/**
 * Reads what the file says about itself through SQLite, since opening it in any other way would drop the locks of this
 * process. A connection that may write removes the files beside a database in WAL mode; if such files exist already, only a
 * connection that cannot write is sure to leave them alone.
 */
function identify(path: string): Found {
  let database: Database | undefined
  try {
    database = openSqlite(path, { fileMustExist: true, readonly: existsSync(`${path}-wal`) })
    const { id, version, count } = database.prepare<[], FileHeader>(header).get() as FileHeader
    if (id === applicationId) return { kind: 'ledger', version }
    if (id === 0 && version === 0 && count === 0) return { kind: 'blank' }
  } catch (error) {
    if (readSqliteCode(error) === 'SQLITE_NOTADB')
      throw createForeignFileError(path, 'not a SQLite database', error)
    throw toLedgerError(error, path)
  } finally {
    database?.close()
  }
  throw createForeignFileError(path, 'a database of another application')
}

interface FileHeader {
  readonly id: number
  readonly version: number
  readonly count: number
}

/** All of it in one statement, and so at one moment: another process may be making the ledger. */
const header = `select (select application_id from pragma_application_id) as id,
  (select user_version from pragma_user_version) as version, (select count(*) from sqlite_schema) as count`

function createForeignFileError(path: string, what: string, cause?: unknown): LedgerUnavailableError {
  return new LedgerUnavailableError(
    `${path} is ${what}, and not a Tallystick ledger. It was left as it is. Name another file; one that does not exist is created.`,
    { cause },
  )
}

let Constructor: typeof BetterSqlite3 | undefined

/**
 * Opens a SQLite file. The first call loads better-sqlite3: users of Postgres, or of the ledger in memory, need no native
 * code. Throws a `ConfigurationError`, with the line that installs the package, if it is missing.
 */
export function openSqlite(path: string, options?: BetterSqlite3.Options): BetterSqlite3.Database {
  Constructor ??= loadDriver()
  return new Constructor(path, options)
}

function loadDriver(): typeof BetterSqlite3 {
  try {
    return createRequire(import.meta.url)('better-sqlite3') as typeof BetterSqlite3
  } catch (error) {
    if (!isMissing(error)) throw explainNativeFailure('A SQLite file', error, process) ?? error
    throw createMissingPackageError('A SQLite file', 'better-sqlite3', error)
  }
}

/** The package itself is missing, and not a part of it. */
function isMissing(error: unknown): boolean {
  const code = readCode(error)
  if (code === 'ERR_MODULE_NOT_FOUND') return true
  return code === 'MODULE_NOT_FOUND' && String(error).includes(`'better-sqlite3'`)
}

/** File system types by the numbers that Linux gives them, where other machines may have the same file open. */
const networkTypes: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0x73757245, 'Coda'],
  [0x5346414f, 'AFS'],
])

/** The name of a file system type that is shared between machines; `undefined` for any other. */
export function nameNetworkType(type: number): string | undefined {
  // Some builds of libuv hand the number on as a signed one.
  return networkTypes.get(type >>> 0)
}

/** The name of the network file system that a folder lies on, where the host can tell. */
export function findNetworkFileSystem(folder: string): string | undefined {
  if (process.platform !== 'linux') return undefined
  try {
    return nameNetworkType(statfsSync(folder).type)
  } catch {
    // If this check fails, opening reports the error.
    return undefined
  }
}
