import { resolve } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/internal'
import { hasStreams, createOutputs, type HostStreams, type Output } from '../terminal/output.ts'
import type { Paint } from '../terminal/paint.ts'

/** Options of `postgresLedger` that a connection string holds. */
export interface PostgresPlace {
  readonly connectionString: string
  readonly schema?: string
  readonly pooled?: boolean
}

/** Returns true if the ledger argument of the command line is a connection string, not a file. */
export function isPostgres(ledger: string): boolean {
  return /^\s*postgres(ql)?:\/\//i.test(ledger)
}

/** Returns true for an address of any kind, which may hold a password, instead of a file. */
export function isAddress(ledger: string): boolean {
  return /^\s*[a-z][a-z0-9+.-]+:\/\//i.test(ledger)
}

const secretParameter = /password|passwd|pwd|secret|token|api[-_]?key|^key$/i

/**
 * The address of the ledger without its password, safe to show. A command that contains it finds the password where libpq
 * looks, in `PGPASSWORD` or in `~/.pgpass`.
 */
export function hidePassword(ledger: string): string {
  if (!isAddress(ledger)) return ledger
  const address = ledger.trim()
  const url = URL.parse(address)
  // An address that cannot be parsed may have its password anywhere.
  if (url === null) return `${address.slice(0, address.indexOf('://'))}://…`
  url.password = ''
  for (const name of [...url.searchParams.keys()])
    if (secretParameter.test(name)) url.searchParams.delete(name)
  return url.href
}

/**
 * Returns where a ledger is, for code of the configuration: the absolute path of its file, or its connection string
 * without secrets.
 */
export function toLedgerSource(ledger: string, workingDirectory: string): string {
  return isAddress(ledger) ? hidePassword(ledger) : resolve(workingDirectory, ledger)
}

/**
 * Reads a connection string: `schema` and `pooled` among its parameters are ours, the rest is for the driver. Throws a
 * `ConfigurationError` for a value that means nothing.
 */
export function parsePostgresPlace(given: string): PostgresPlace {
  const connectionString = given.trim()
  const url = URL.parse(connectionString)
  if (url === null) return { connectionString }
  const { searchParams } = url
  const [schema, pooled] = [searchParams.get('schema'), searchParams.get('pooled')]
  if (schema === null && pooled === null) return { connectionString }
  if (pooled !== null && pooled !== 'true' && pooled !== 'false') {
    throw new ConfigurationError(
      `The parameter pooled of the connection string is ${pooled}, which is neither true nor false. Write ?pooled=true for a pooler in transaction mode, such as PgBouncer.`,
    )
  }
  searchParams.delete('schema')
  searchParams.delete('pooled')
  return {
    connectionString: url.href,
    ...(schema !== null && { schema }),
    ...(pooled !== null && { pooled: pooled === 'true' }),
  }
}

/** Characters that need no quotes in any shell. */
const plain = /^[\w@%+=:,./-]+$/

/** Controls, line ends, direction marks and invisible characters: what a terminal would act on when it prints or pastes. */
const unprintable = /[\p{C}\p{Zl}\p{Zp}]/gu

/**
 * A word for a command line that a person pastes into a shell: as it is, or in quotes that nothing in it can leave. What
 * a terminal would act on is written as escapes, in the quotes that bash, zsh and ksh read (`$'…'`).
 */
function quoteWord(word: string): string {
  if (plain.test(word)) return word
  if (word.search(unprintable) < 0) return `'${word.replaceAll("'", `'\\''`)}'`
  const toBytes = (character: string): string =>
    Array.from(Buffer.from(character), (byte) => String.raw`\x` + byte.toString(16).padStart(2, '0')).join('')
  return `$'${word.replaceAll(/[\\']/g, String.raw`\$&`).replaceAll(unprintable, toBytes)}'`
}

/** A place to show a run. */
export interface View {
  readonly write: (text: string) => void
  readonly paint: Paint
}

/** The process that a verb runs in. */
export interface CommandContext {
  /** True if the output is for programs (`--json`). */
  readonly json: boolean
  readonly environment: NodeJS.ProcessEnv
  readonly workingDirectory: string
  /** Standard input. */
  readonly stdin: NodeJS.ReadableStream
  /**
   * Where to ask a person: stderr, with answers from stdin. Absent if either is not a terminal, or if JSON is printed.
   */
  readonly person?: Output
  /** True if a person reads stdout. */
  readonly isRead: boolean
  /** Columns of the terminal, if a person reads stdout. */
  readonly columns?: number
  /** Colours of stdout. */
  readonly paint: Paint
  /** Where a run is shown while it is driven: stdout, or stderr when stdout is for JSON. */
  readonly view: View
  /** stderr, for a run whose answer alone goes to stdout. */
  readonly aside: View
  /** Writes to stdout. Waits while the reader of the stream is slower. */
  readonly print: (text: string) => Promise<void>
  /** Writes text that is itself data: unchanged if stdout is not a terminal. */
  readonly printData: (text: string) => Promise<void>
  /** Writes a line to stderr. */
  readonly say: (line: string) => void
  /**
   * Replaces the line of progress; an empty text clears it. Absent if stderr is not a terminal, or if JSON is printed.
   */
  readonly progress?: (text: string) => void
  /** Lets `work` print into a pager, if a person reads stdout and `isWanted`. */
  readonly paged: (isWanted: boolean, work: (context: CommandContext) => Promise<void>) => Promise<void>
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number
  /** The user's name for this program, for commands in messages. */
  readonly programName: string
}

/** The parts of a process that a command uses. */
export interface CommandHost extends HostStreams {
  readonly cwd: () => string
  /** Milliseconds since 1970 UTC. Default: the clock of the machine. */
  readonly now?: () => number
}

const anyHost = option.valueThat(
  'a host, such as process, or an object with its env, cwd, stdin, stdout and stderr',
  (value) => {
    const { cwd, now = Date.now } = Object(value) as Partial<CommandHost>
    return hasStreams(value) && typeof cwd === 'function' && typeof now === 'function'
  },
)

/** Throws a `ConfigurationError` for a value that is not a host. */
export function requireHost(subject: string, host: CommandHost): void {
  requireOptions(subject, anyHost, host, 'the host')
}

/** Creates the context of a command in a process. Throws a `ConfigurationError` for a value that is not a host. */
export function createProcessContext(json: boolean, host: CommandHost = process): CommandContext {
  requireHost('createProcessContext', host)
  const { stdin, env } = host
  const { out, errors } = createOutputs(host)
  const context: CommandContext = {
    json,
    environment: env,
    workingDirectory: host.cwd(),
    stdin,
    ...(stdin.isTTY === true && errors.isTerminal && !json && { person: errors }),
    isRead: out.isTerminal && !json,
    ...(out.isTerminal && !json && { columns: out.size().columns }),
    paint: out.paint,
    view: json ? errors : out,
    aside: errors,
    print: out.print,
    printData: out.printData,
    say: (line) => errors.write(`${line}\n`),
    ...(errors.isTerminal && !json && { progress: errors.rewriteLine }),
    now: host.now ?? (() => Date.now()),
    // In this repository the command is a script of package.json; elsewhere it is a program.
    programName: ['tallystick', 'demo'].includes(env['npm_lifecycle_event'] ?? '')
      ? 'npx -y pnpm@12 tallystick'
      : 'tallystick',
    paged: async (isWanted, work) => {
      const pager = isWanted && !json ? await out.openPager() : undefined
      if (pager === undefined) return await work(context)
      try {
        await work({ ...context, print: pager.print })
      } finally {
        await pager.close()
      }
    },
  }
  return context
}

/** A command line that a person can paste into a shell. It repeats no password. */
export function formatCommand(programName: string, ...words: readonly string[]): string {
  return [programName, ...words.map((word) => quoteWord(hidePassword(word)))].join(' ')
}

/** Prints a value as a line of JSON. */
export function printJson({ print }: Pick<CommandContext, 'print'>, value: unknown): Promise<void> {
  return print(`${JSON.stringify(value)}\n`)
}

/** Prints `data` as a line of JSON with `--json`, else `text`, which ends its own last line. */
export function printEither(context: CommandContext, data: unknown, text: string): Promise<void> {
  return context.json ? printJson(context, data) : context.print(text)
}
