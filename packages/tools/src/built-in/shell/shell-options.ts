import { option, type OptionCheck } from '@tallystick/core/kit'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { approvalPolicy, type ApprovalPolicy } from '../../approval/approval.ts'
import { wholeTest } from './shell-input.ts'
import type { Timers } from '../timers.ts'

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
   * What each further argument has to match from its beginning to its end; `true` for anything, options of the program
   * included, of which one may write to a file or run a program.
   */
  readonly more: RegExp | true
}

/** One program that a model may run. */
export interface ShellProgram {
  /** Its absolute path. Default: found in `PATH` when the tool is made, except below `root`. */
  readonly path?: string | undefined
  /** Default: any arguments. They decide what a model can do: `git -c`, for example, runs any program. */
  readonly args?: AllowedArguments | undefined
  /** Whether it changes nothing with these arguments, so that its calls need no approval. Default `false`. */
  readonly read?: boolean | undefined
  /** What the program is for; the model reads it. */
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

function isEnvironment(value: unknown): boolean {
  if (anyObject(value, '') !== undefined) return false
  return Object.entries(value as object).every(
    ([name, text]) =>
      /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && typeof text === 'string' && !text.includes('\0'),
  )
}

const open = fields<OpenArguments>({
  first: listOf(anyText),
  more: valueThat(
    'true for anything, or a RegExp without lookaround, references back and repeats over 1,000',
    (value) => value === true || (value instanceof RegExp && wholeTest(value) !== undefined),
  ),
})
const allowedList: OptionCheck = (value, path) =>
  Array.isArray(value) ? listOf(anyText)(value, path) : open(value, path)

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

/** What can be given as options. */
export const shellOptions: OptionCheck = fields<ShellOptions>(
  {
    root: filledText,
    programs: (value, path) =>
      valueThat(
        'an object with a program for each name, as in { git: { args: [["status"]] } }',
        (given) => anyObject(given, '') === undefined && Object.keys(given as object).length > 0,
      )(value, path) ?? recordOf(program)(value, path),
    env: maybe(valueThat('an object of texts without NUL, by names of letters, digits and _', isEnvironment)),
    name: maybe(filledText),
    about: maybe(filledText),
    maxBytes: maybe(numberFrom(1, { whole: true })),
    timeoutMs: maybe(milliseconds),
    graceMs: maybe(milliseconds),
    approval: maybe(approvalPolicy),
    timers: maybe(anyObject),
  },
  {
    ...{
      cwd: 'root',
      folder: 'root',
      directory: 'root',
      workdir: 'root',
      environment: 'env',
      timeout: 'timeoutMs',
    },
    ...{
      commands: 'programs',
      allow: 'programs',
      allowed: 'programs',
      description: 'about',
      maxOutput: 'maxBytes',
    },
  },
)
