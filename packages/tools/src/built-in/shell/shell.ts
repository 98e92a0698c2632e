import type { StandardSchemaV1 } from '@standard-schema/spec'
import { ConfigurationError, type Tool } from '@tallystick/core'
import { requireOptions } from '@tallystick/core/kit'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import type { ApprovalFunction, ApprovalPolicy } from '../../approval/approval.ts'
import { boundedText } from '../../content/bounded-text.ts'
import { toolOf } from '../../definition/define-tool.ts'
import { assertSpecification } from '../../definition/specification-check.ts'
import type { ToolContext } from '../../execution/executor.ts'
import { ToolError } from '../../execution/tool-error.ts'
import { partsOf, pathText, quoted } from '../files/names/asked-path.ts'
import { shownNames } from '../files/names/shown-names.ts'
import { withPlace } from '../files/root/place.ts'
import { rootAt, type Root } from '../files/root/root.ts'
import { hostTimers } from '../timers.ts'
import { type FoundProgram, foundProgram } from './found-program.ts'
import { type Bounds, type Ended, runProgram } from './run-program.ts'
import { inputSchema, programsText, type ShellInput } from './shell-input.ts'
import { type ShellOptions, shellOptions } from './shell-options.ts'

export type { AllowedArguments, OpenArguments, ShellOptions, ShellProgram } from './shell-options.ts'

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
  const root = rootAt('shell', options.root, shownNames('shell', [], true))
  const programs = Object.entries(options.programs).map((each) =>
    foundProgram(name, each, { root: root.real }),
  )
  const bounds = {
    maxBytes: options.maxBytes ?? 30_000,
    timeoutMs,
    graceMs,
    timers: options.timers ?? hostTimers,
  }
  const schema = inputSchema(name, programs)
  const setup: Setup = { root, programs, env: { ...options.env }, bounds }
  const specification = {
    name,
    description: `${about === undefined ? '' : `${about.trim()} `}${description}\n${programsText(programs)}`,
    effect: programs.every(({ reads }) => reads) ? ('read' as const) : ('write' as const),
    // The limit of the program is reached first; this one is for a host that hangs.
    timeoutMs: timeoutMs + graceMs + 5_000,
    approval: approvalOf(programs, approval),
    execute: (input: ShellInput, context: ToolContext) => execute(setup, input, context),
  }
  assertSpecification({
    ...specification,
    input: schema.jsonSchema,
    execute: () => undefined,
    approval: 'always',
  })
  return Object.freeze(toolOf<StandardSchemaV1<unknown, ShellInput>>(specification, schema))
}

const description =
  'Runs a program and answers { exitCode, stdout, stderr } as JSON. There is no shell: give the arguments one by one; ' +
  'pipes, redirects, wildcards and variables do not work. Of long output the middle is left out.'

/** What all calls of a tool share. */
interface Setup {
  readonly root: Root
  readonly programs: readonly FoundProgram[]
  readonly env: Readonly<Record<string, string>>
  readonly bounds: Bounds
}

function approvalOf(
  programs: readonly FoundProgram[],
  policy: ApprovalPolicy<JsonObject>,
): ApprovalFunction<ShellInput> {
  return (input, context) => {
    if (programs.find(({ name }) => name === input.program)?.reads) return false
    if (policy === 'never') return false
    return policy === 'always' ? `runs ${commandText(input)}` : policy(input, context)
  }
}

/** The call for a person: each argument in quotes that has more than plain characters, so that none passes for two. */
function commandText({ program, args = [], cwd, stdin }: ShellInput): string {
  const words = args.map((arg) => (/^[\w./:=@%+,-]+$/.test(arg) ? arg : quoted(arg)))
  const where = cwd === undefined ? '' : ` in ${quoted(cwd)}`
  const input = stdin === undefined ? '' : `, with ${stdin.length} characters of input`
  return `${boundedText([program, ...words].join(' '), 1_000)}${where}${input}`
}

async function execute(
  { root, programs, env, bounds }: Setup,
  input: ShellInput,
  context: ToolContext,
): Promise<Json> {
  const program = programs.find(({ name }) => name === input.program)
  if (program === undefined) throw new ToolError(`There is no program ${quoted(input.program)}.`)
  const { args = [], cwd = '.', stdin } = input
  return await withPlace(root, partsOf(cwd), {}, async ({ folder, name, path }) => {
    if (name !== undefined) throw new ToolError(`${quoted(pathText(path))} is no folder to run a program in.`)
    context.signal.throwIfAborted()
    const start = { path: program.path, args, cwd: folder.at('.'), env, stdin }
    const ended = await runProgram(start, bounds, context).catch((error: unknown) => {
      throw new ToolError(`${program.name} could not be started (${codeOf(error)}). Nothing was run.`, {
        cause: error,
      })
    })
    if (ended.stopped === undefined) return shown(ended)
    const sofar = `Until then: ${JSON.stringify(shown(ended, maxStoppedBytes))}`
    if (ended.stopped === 'aborted') throw new ToolError(`${program.name} was stopped. ${sofar}`)
    const late = `${program.name} had not ended after ${bounds.timeoutMs} ms and was stopped.`
    throw new ToolError(`${late} It may have done part of its work. ${sofar}`, { outcome: 'timed_out' })
  })
}

/** Bytes of each stream that the error of a stopped program shows. */
const maxStoppedBytes = 3_000

function shown({ exitCode, signal, outputs }: Ended, maxBytes?: number): JsonObject {
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

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : 'the system refuses it'
}
