import { option, requireOptions } from '@tallystick/core/kit'
import { hasStreams, hostOutputs, type HostStreams, type Output } from '../terminal/host-output.ts'
import { shownLedger } from './ledger-place.ts'
import { shellWord } from '../terminal/shell-word.ts'
import type { Paint } from '../terminal/paint.ts'

/** Where a run is shown. */
export interface View {
  readonly write: (text: string) => void
  readonly paint: Paint
}

/** What a verb gets from the process that it runs in. */
export interface CommandContext {
  /** Data for people or for programs (`--json`). */
  readonly json: boolean
  readonly environment: NodeJS.ProcessEnv
  readonly workingDirectory: string
  /** Standard input. */
  readonly stdin: NodeJS.ReadableStream
  /**
   * Where to ask a person: stderr, with answers from stdin. Absent if either is not a terminal, or if JSON is printed.
   */
  readonly person?: Output
  /** Whether a person reads what goes to stdout. */
  readonly isRead: boolean
  /** Columns of the terminal where a person reads what goes to stdout. */
  readonly columns?: number
  /** Colours of stdout. */
  readonly paint: Paint
  /** Where a run is shown while it is driven: stdout, or stderr when stdout is for JSON. */
  readonly view: View
  /** stderr, for a run of which only the answer goes to stdout. */
  readonly aside: View
  /** Writes data to stdout. Waits while the reader of the stream is slower. */
  readonly print: (text: string) => Promise<void>
  /** Writes text that is data itself: as it is where stdout is no terminal. */
  readonly printData: (text: string) => Promise<void>
  /** Writes a line to stderr. */
  readonly say: (line: string) => void
  /**
   * Writes the progress of long work over the text before; without text, removes it. Absent if stderr is not a
   * terminal, or if JSON is printed.
   */
  readonly progress?: (text: string) => void
  /** Has `work` print what may be longer than a screen: into a pager where a person reads stdout, and `isWanted`. */
  readonly paged: (isWanted: boolean, work: (context: CommandContext) => Promise<void>) => Promise<void>
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number
  /** How the user calls this program, for the commands that messages name. */
  readonly programName: string
}

/** The part of a process that a command uses. */
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

/** Refuses what is no host where one belongs. Throws a `ConfigurationError`. */
export function requireHost(subject: string, host: CommandHost): void {
  requireOptions(subject, anyHost, host, 'the host')
}

/** The context of a command in a process. Throws a `ConfigurationError` for what is no host. */
export function processContext(json: boolean, host: CommandHost = process): CommandContext {
  requireHost('processContext', host)
  const { stdin, env } = host
  const { out, errors } = hostOutputs(host)
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
    programName: programName(env),
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

/** Inside this repository the command is a script of its package.json; elsewhere it is a program. */
function programName(environment: NodeJS.ProcessEnv): string {
  const script = environment['npm_lifecycle_event']
  return script === 'tallystick' || script === 'demo' ? 'npx -y pnpm@12 tallystick' : 'tallystick'
}

/** A command line that a person can paste into a shell. It repeats no password. */
export function commandLine(programName: string, ...words: readonly string[]): string {
  return [programName, ...words.map((word) => shellWord(shownLedger(word)))].join(' ')
}
