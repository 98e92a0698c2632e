import { once } from 'node:events'
import { shownLedger } from './ledger-place.ts'
import type { Paint } from './view/paint.ts'
import { paintFor } from './view/paint.ts'

/** Where a run is shown. */
export interface View {
  readonly write: (text: string) => void
  readonly paint: Paint
}

/** What a verb has of the place that it runs in. */
export interface CommandContext {
  /** Data for people or for programs (`--json`). */
  readonly json: boolean
  readonly environment: NodeJS.ProcessEnv
  readonly workingDirectory: string
  readonly stdin: NodeJS.ReadableStream
  /** Whether a person can be asked: on stderr, answering on stdin. */
  readonly interactive: boolean
  readonly questions: NodeJS.WritableStream
  /** Whether a person reads what goes to stdout. */
  readonly isRead: boolean
  /** Colours of stdout. */
  readonly paint: Paint
  /** Where a run is shown while it goes on: stdout, or stderr where stdout is for JSON. */
  readonly view: View
  /** stderr, for a run of which only the answer goes to stdout. */
  readonly aside: View
  /** Writes to stdout, where the data go. Waits while the reader is behind. */
  readonly print: (text: string) => Promise<void>
  /** Writes a line to stderr, where all else goes. */
  readonly say: (line: string) => void
  /** Writes how far long work is; absent where stderr is no terminal, or JSON is printed. */
  readonly progress?: (text: string) => void
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number
  /** How the user calls this program, for the commands that messages name. */
  readonly programName: string
}

/** The part of a process that a command uses. */
export type CommandHost = Pick<NodeJS.Process, 'env' | 'cwd'> & {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean }
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean }
  /** Milliseconds since 1970 UTC. Default: the clock of the machine. */
  readonly now?: () => number
}

/** The context of a command in a process. */
export function processContext(json: boolean, host: CommandHost = process): CommandContext {
  const { stdout, stderr, stdin, env } = host
  const viewOn = (stream: typeof stdout): View => ({
    write: (text) => void stream.write(text),
    paint: paintFor(stream, env),
  })
  return {
    json,
    environment: env,
    workingDirectory: host.cwd(),
    stdin,
    interactive: stdin.isTTY === true && stderr.isTTY === true && !json,
    questions: stderr,
    isRead: stdout.isTTY === true && !json,
    paint: paintFor(stdout, env),
    view: viewOn(json ? stderr : stdout),
    aside: viewOn(stderr),
    print: async (text) => {
      if (!stdout.write(text)) await once(stdout, 'drain')
    },
    say: (line) => void stderr.write(`${line}\n`),
    ...(stderr.isTTY === true && !json && { progress: (text: string) => void stderr.write(text) }),
    now: host.now ?? (() => Date.now()),
    programName: programName(env),
  }
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

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
