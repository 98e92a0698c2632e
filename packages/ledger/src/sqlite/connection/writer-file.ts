import { chmodSync, chownSync, existsSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Database, Statement } from 'better-sqlite3'
import { LedgerUnavailableError } from '@tallystick/core'
import { ledgerFailure, sqliteCode } from '../schema/sqlite-failure.ts'
import { openSqlite } from './sqlite-package.ts'

/** A process that writes a ledger file. */
export interface Writer {
  readonly pid: number
  readonly host: string
  /** When it took the file over from another one, or first wrote it, in milliseconds since 1970 UTC. */
  readonly since: number
}

/** So often a process signs the file while others disturb it. */
const maxSignings = 10

/** How long to wait for a process that only reads the writer's name. */
const pollMs = 100

/** A connection to the file. What each run executes on it is prepared once. */
interface OpenWriterFile {
  readonly database: Database
  readonly identity: string
  readonly begin: Statement
  readonly rollback: Statement
  /** Prepared when it is first needed: a new file has no table yet. */
  signature?: Statement<[], Writer>
}

/**
 * The file beside a ledger that says which process writes it: a small SQLite database, on which the writer keeps a
 * transaction open. The operating system holds that lock, so a crash gives it back, and a process that is stopped keeps
 * it; others still read who it is.
 */
export class WriterFile {
  readonly #ledgerPath: string
  readonly #path: string
  #open: OpenWriterFile | undefined
  /** What this process recorded in the file last. */
  #signed: Writer | undefined

  /** `ledgerPath` is without symbolic links, so that there is one file however the ledger is named. */
  constructor(ledgerPath: string) {
    this.#ledgerPath = ledgerPath
    this.#path = `${ledgerPath}-writer`
  }

  /** Locks the file and records this process in it; returns false if another process holds the lock. */
  lock(): boolean {
    for (let tries = 1; ; tries++) {
      const open = this.#lockCurrent()
      if (open === undefined) return false
      if (this.#isSigned(open) || this.#sign(open.database, tries < maxSignings)) return true
    }
  }

  unlock(): void {
    if (this.#open?.database.inTransaction) this.#open.rollback.run()
  }

  /**
   * Whether a process holds the lock; `undefined` if the file does not exist. A process that locks it at this very
   * moment has to try again.
   */
  isLocked(): boolean | undefined {
    if (!existsSync(this.#path)) return undefined
    try {
      return this.#lockCurrent() === undefined
    } finally {
      this.close()
    }
  }

  /** The process that holds the file, or held it last; `undefined` if no process is recorded in it. */
  writer(): Writer | undefined {
    if (!existsSync(this.#path)) return undefined
    let database: Database | undefined
    try {
      database = openSqlite(this.#path, { readonly: true, timeout: pollMs })
      return database.prepare<[], Writer>('select pid, host, since from writer').get()
    } catch (error) {
      // Not signed yet, or being signed or taken away at this moment.
      if (/^SQLITE_(ERROR|BUSY|CANTOPEN|READONLY)/.test(sqliteCode(error) ?? '')) return undefined
      throw this.#failure(error)
    } finally {
      database?.close()
    }
  }

  /**
   * Removes the file unless a process holds its lock. A process that has it open and not locked detects that the file
   * was replaced.
   */
  remove(): void {
    try {
      if (existsSync(this.#path) && this.#lockCurrent()) unlinkSync(this.#path)
    } catch {
      // A file that stays does no harm: no process holds its lock.
    } finally {
      this.close()
    }
  }

  close(): void {
    this.#open?.database.close()
    this.#open = undefined
  }

  /** Returns a locked connection to the file that is at the path now; `undefined` if another process holds the lock. */
  #lockCurrent(): OpenWriterFile | undefined {
    for (;;) {
      const open = (this.#open ??= this.#openFile())
      if (open === undefined) return undefined
      try {
        open.begin.run()
      } catch (error) {
        if (sqliteCode(error) === 'SQLITE_BUSY') return undefined
        this.close()
        throw this.#failure(error)
      }
      // Another process may have removed the file meanwhile: a lock on a removed file locks nothing.
      if (identityOf(this.#path) === open.identity) return open
      this.close()
    }
  }

  /** Returns a connection to the file; `undefined` if another process keeps even its schema from being read. */
  #openFile(): OpenWriterFile | undefined {
    for (;;) {
      const identity = identityOf(this.#path)
      if (identity === undefined) {
        this.#make()
        continue
      }
      let database: Database | undefined
      try {
        database = openSqlite(this.#path, { fileMustExist: true, timeout: 0 })
        // Its content is of no use after a loss of power, so it is not synced.
        database.pragma('synchronous = off')
        const [begin, rollback] = [database.prepare('begin immediate'), database.prepare('rollback')]
        return { database, identity, begin, rollback }
      } catch (error) {
        database?.close()
        if (sqliteCode(error) === 'SQLITE_BUSY') return undefined
        if (existsSync(this.#path)) throw this.#failure(error)
      }
    }
  }

  /**
   * Creates the empty file with the permissions of the ledger, as SQLite does for its own files. Opening a new file
   * drops no locks.
   */
  #make(): void {
    const { mode, uid, gid } = statSync(this.#ledgerPath)
    try {
      writeFileSync(this.#path, '', { flag: 'wx' })
      chmodSync(this.#path, mode & 0o777)
      if (process.getuid?.() === 0) chownSync(this.#path, uid, gid)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return
      throw this.#failure(error)
    }
  }

  /** Whether no other process has recorded itself since this one did: then nothing has to be committed. */
  #isSigned(open: OpenWriterFile): boolean {
    if (this.#signed === undefined) return false
    try {
      open.signature ??= open.database.prepare<[], Writer>('select pid, host, since from writer')
      const { pid, host, since } = open.signature.get() ?? {}
      return pid === this.#signed.pid && host === this.#signed.host && since === this.#signed.since
    } catch {
      // A new file, or one that signing will find damaged.
      return false
    }
  }

  /** What others read has to be committed, which gives the lock back for a moment. Answers whether we have it still. */
  #sign(database: Database, mayRepeat: boolean): boolean {
    const self: Writer = { pid: process.pid, host: hostname(), since: Date.now() }
    try {
      database.pragma(`busy_timeout = ${pollMs}`)
      database.exec('create table if not exists writer (pid integer, host text, since integer)')
      database.exec('delete from writer')
      database.prepare<[Writer]>('insert into writer values (@pid, @host, @since)').run(self)
      database.exec('commit')
      database.pragma('busy_timeout = 0')
      database.exec('begin immediate')
      const { pid, since } = database.prepare<[], Writer>('select * from writer').get() ?? {}
      // Another process may have removed the file in that moment: then no other process sees this lock.
      const isCurrent = identityOf(this.#path) === this.#open?.identity
      if (isCurrent && pid === self.pid && since === self.since) {
        this.#signed = self
        return true
      }
    } catch (error) {
      const code = sqliteCode(error)
      // The journal has one name for all files that are at the path one after the other: another process removed it.
      const isDisturbed = mayRepeat && code === 'SQLITE_IOERR_DELETE_NOENT'
      if (code !== 'SQLITE_BUSY' && !isDisturbed) throw this.#failure(error)
      // A process that was stopped while reading prevents signing, but not writing.
      if (code === 'SQLITE_BUSY' && database.inTransaction) return true
    }
    this.close()
    return false
  }

  #failure(error: unknown): Error {
    if (/^SQLITE_(CORRUPT|NOTADB)/.test(sqliteCode(error) ?? '')) {
      return new LedgerUnavailableError(
        `The file ${this.#path}, by which processes agree who writes the ledger, is damaged. It holds nothing of the ` +
          'ledger. Stop the processes that use the ledger and remove that file.',
        { cause: error },
      )
    }
    return ledgerFailure(error, this.#ledgerPath)
  }
}

/** The identity of the file at a path; a file that replaces it has another. */
function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && `${stats.dev} ${stats.ino} ${stats.birthtimeNs}`
}
