import {
  findProgram,
  type FoundProgram,
  createInputSchema,
  describePrograms,
  type ShellInput,
  createWholeTest,
} from './shell-input.ts'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { ConfigurationError, type Tool } from '@tallystick/core'
import { option, type Schema, requireOptions, readCode } from '@tallystick/core/internal'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import { type ApprovalFunction, approvalPolicy, type ApprovalPolicy } from '../define/approval.ts'
import { assertSpecification, createTool } from '../define/define-tool.ts'
import { ToolError } from '../define/outcome.ts'
import type { ToolContext } from '../define/run-tool.ts'
import { boundText } from '../define/text.ts'
import { hostTimers, type Timers } from '../host.ts'
import { splitPath, joinPath, quotePath, createNameRules } from './files/names.ts'
import { type Root, openRoot, withPlace } from './files/root.ts'
import { type Bounds, type Ended, runProgram } from './run-program.ts'

/**
 * The arguments that a program may be called with: lists of exactly these, as in `[['status'], ['log', '--oneline']]`; or a
 * function that returns true for allowed arguments. What may follow others is named: `{ first: ['log', '--oneline'], more:
 * /-\\d{1,3}/ }`.
 */
export type AllowedArguments =
  | readonly (readonly string[] | OpenArguments)[]
  | ((args: readonly string[]) => boolean)

/** Arguments that any number of others may follow. */
export interface OpenArguments {
  readonly first: readonly string[]
  /**
   * A pattern that each further argument has to match from its beginning to its end; `true` for anything, including options
   * of the program, some of which may write to a file or run a program.
   */
  readonly more: RegExp | true
}

/** One program that a model may run. */
export interface ShellProgram {
  /** Its absolute path. Default: found in `PATH` when the tool is made, except below `root`. */
  readonly path?: string | undefined
  /** Default: any arguments. They decide what a model can do: `git -c`, for example, runs any program. */
  readonly args?: AllowedArguments | undefined
  /** It changes nothing with these arguments, so its calls need no approval. Default `false`. */
  readonly read?: boolean | undefined
  /** Tells the model the program's purpose. */
  readonly about?: string | undefined
}

/** The programs that a model may run, and how. */
export interface ShellOptions {
  /** The folder in which, or below which, programs run. It does not keep a program from using other folders. */
  readonly root: string
  /** The programs by the names that the model uses: no other program can be started. */
  readonly programs: Readonly<Record<string, ShellProgram>>
  /** The whole environment of the programs. Default: empty. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Default `shell`. */
  readonly name?: string | undefined
  /** Begins the description that the model reads. */
  readonly about?: string | undefined
  /** Bytes of output shown of each stream, and of both as progress. Default 30 000. */
  readonly maxBytes?: number | undefined
  /** Milliseconds that a program may run. Default 60 000. */
  readonly timeoutMs?: number | undefined
  /** Milliseconds between the signal that asks a program to end and the one that ends it. Default 2 000. */
  readonly graceMs?: number | undefined
  /** When a person has to approve a call of a program that is not marked as `read`. Default: always. */
  readonly approval?: ApprovalPolicy<JsonObject> | undefined
  /** The clock that times are measured by. Default: the host's. */
  readonly timers?: Timers | undefined
}

const { anyObject, anyText, fields, filledText, listOf, maybe, milliseconds, numberFrom, recordOf } = option
const { functionOr, trueOrFalse, valueThat } = option

const open = fields<OpenArguments>({
  first: listOf(anyText),
  more: valueThat(
    'true for anything, or a RegExp without lookaround, references back and repeats over 1,000',
    (value) => value === true || (value instanceof RegExp && createWholeTest(value) !== undefined),
  ),
})
const allowedList: Schema = (value) => (Array.isArray(value) ? listOf(anyText)(value) : open(value))

const program = fields<ShellProgram>(
  {
    path: maybe(filledText),
    args: maybe(functionOr(listOf(allowedList))),
    read: maybe(trueOrFalse),
    about: maybe(filledText),
  },
  {
    command: 'path',
    bin: 'path',
    arguments: 'args',
    allow: 'args',
    readOnly: 'read',
    effect: 'read',
    description: 'about',
  },
)

const shellOptions: Schema = fields<ShellOptions>(
  {
    root: filledText,
    programs: (value) =>
      valueThat(
        'an object with a program for each name, as in { git: { args: [["status"]] } }',
        (given) => anyObject(given) === undefined && Object.keys(given as object).length > 0,
      )(value) ?? recordOf(program)(value),
    env: maybe(
      valueThat(
        'an object of texts without NUL, by names of letters, digits and _',
        (value) =>
          anyObject(value) === undefined &&
          Object.entries(value as object).every(
            ([name, text]) =>
              /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && typeof text === 'string' && !text.includes('\0'),
          ),
      ),
    ),
    name: maybe(filledText),
    about: maybe(filledText),
    maxBytes: maybe(numberFrom(1, { whole: true })),
    timeoutMs: maybe(milliseconds),
    graceMs: maybe(milliseconds),
    approval: maybe(approvalPolicy),
    timers: maybe(anyObject),
  },
  {
    ...{ cwd: 'root', folder: 'root', directory: 'root', workdir: 'root', environment: 'env' },
    ...{ commands: 'programs', allow: 'programs', allowed: 'programs', description: 'about' },
    ...{ timeout: 'timeoutMs', maxOutput: 'maxBytes' },
  },
)

/**
 * A tool that runs one of the named programs, and returns `{ exitCode, stdout, stderr, signal?, note? }` as JSON;
 * output is reported as progress. Throws `ConfigurationError` if a program is not found. No shell reads the call: the
 * tool starts the program by the path that it had when the tool was made, with its arguments one by one, only the given
 * environment, and no terminal. When a call ends, all processes of its group end. A call needs an approval, unless the
 * program is marked as `read`; the tool is a `write` unless all programs are. The tool does not limit what a program
 * does: name programs, and arguments, that can do no harm.
 */
export function shell(options: ShellOptions): Tool {
  requireOptions('shell', shellOptions, options)
  const { name = 'shell', about, approval = 'always', timeoutMs = 60_000, graceMs = 2_000 } = options
  if (process.platform === 'win32') {
    throw new ConfigurationError(
      `The tool ${name} needs groups of processes, which Windows does not have: use it on Linux or macOS.`,
    )
  }
  const root = openRoot('shell', options.root, createNameRules('shell', [], true))
  const programs = Object.entries(options.programs).map((each) =>
    findProgram(name, each, { root: root.real }),
  )
  const bounds = {
    maxBytes: options.maxBytes ?? 30_000,
    timeoutMs,
    graceMs,
    timers: options.timers ?? hostTimers,
  }
  const schema = createInputSchema(name, programs)
  const env = { ...options.env }
  const specification = {
    name,
    description: `${about === undefined ? '' : `${about.trim()} `}${description}\n${describePrograms(programs)}`,
    effect: programs.every(({ reads }) => reads) ? ('read' as const) : ('write' as const),
    // The limit of the program is reached first; this one is for a host that hangs.
    timeoutMs: timeoutMs + graceMs + 5_000,
    approval: ((input, given) => {
      const isRead = programs.find((each) => each.name === input.program)?.reads
      if (isRead || approval === 'never') return false
      return approval === 'always' ? `runs ${describeCommand(input)}` : approval(input, given)
    }) satisfies ApprovalFunction<ShellInput>,
    execute: (input: ShellInput, context: ToolContext) =>
      execute(root, programs, env, bounds, input, context),
  }
  assertSpecification({
    ...specification,
    input: schema.jsonSchema,
    execute: () => undefined,
    approval: 'always',
  })
  return Object.freeze(createTool<StandardSchemaV1<unknown, ShellInput>>(specification, schema))
}

const description =
  'Runs a program and answers { exitCode, stdout, stderr } as JSON. There is no shell: give the arguments one by one; ' +
  'pipes, redirects, wildcards and variables do not work. Of long output the middle is left out.'

/** The call for a person: each argument in quotes that has more than plain characters, so that none passes for two. */
function describeCommand({ program, args = [], cwd, stdin }: ShellInput): string {
  const words = args.map((arg) => (/^[\w./:=@%+,-]+$/.test(arg) ? arg : quotePath(arg)))
  const where = cwd === undefined ? '' : ` in ${quotePath(cwd)}`
  const input = stdin === undefined ? '' : `, with ${stdin.length} characters of input`
  return `${boundText([program, ...words].join(' '), 1_000)}${where}${input}`
}

async function execute(
  root: Root,
  programs: readonly FoundProgram[],
  env: Readonly<Record<string, string>>,
  bounds: Bounds,
  input: ShellInput,
  context: ToolContext,
): Promise<Json> {
  const program = programs.find(({ name }) => name === input.program)
  if (program === undefined) throw new ToolError(`There is no program ${quotePath(input.program)}.`)
  const { args = [], cwd = '.', stdin } = input
  return await withPlace(root, splitPath(cwd), {}, async ({ folder, name, path }) => {
    if (name !== undefined)
      throw new ToolError(`${quotePath(joinPath(path))} is not a folder to run a program in.`)
    context.signal.throwIfAborted()
    const start = { path: program.path, args, cwd: folder.at('.'), env, stdin }
    const ended = await runProgram(start, bounds, context).catch((error: unknown) => {
      const why = readCode(error) ?? 'the system refuses it'
      throw new ToolError(`${program.name} could not be started (${why}). Nothing was run.`, { cause: error })
    })
    if (ended.stopped === undefined) return showEnded(ended)
    const sofar = `Until then: ${JSON.stringify(showEnded(ended, maxStoppedBytes))}`
    if (ended.stopped === 'aborted') throw new ToolError(`${program.name} was stopped. ${sofar}`)
    const late = `${program.name} had not ended after ${bounds.timeoutMs} ms and was stopped.`
    throw new ToolError(`${late} It may have done part of its work. ${sofar}`, { outcome: 'timed_out' })
  })
}

/** Bytes of each stream that the error of a stopped program shows. */
const maxStoppedBytes = 3_000

function showEnded({ exitCode, signal, outputs }: Ended, maxBytes?: number): JsonObject {
  const names = ['stdout', 'stderr'] as const
  const cut = names.filter((name) => outputs[name].omitted > 0)
  const note = `Not all of ${cut.join(' and ')} is shown: have the program write less, or to a file.`
  return {
    exitCode,
    ...(signal !== null && { signal }),
    ...Object.fromEntries(names.map((name) => [name, outputs[name].text(maxBytes)])),
    ...(cut.length > 0 && { note }),
  }
}
