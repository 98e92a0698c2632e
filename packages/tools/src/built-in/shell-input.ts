import type { AllowedArguments, OpenArguments, ShellProgram } from './shell.ts'
import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { delimiter, isAbsolute, join, sep } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import type { InputIssue } from '../define/input-issues.ts'
import { createBoundedTest, type ReadSchema, readSchema } from '../define/schema.ts'
import { maxPathCharacters } from './files/names.ts'

/** A program with the path that it is started by. */
export interface FoundProgram {
  readonly name: string
  readonly path: string
  readonly args?: AllowedArguments | undefined
  readonly reads: boolean
  readonly about?: string | undefined
}

/**
 * Finds a program once, so that nothing that changes later is run in its place by its name. Folders of `PATH` that are
 * relative, or within the root, are passed over: tools that write there must not be able to make a program. Throws
 * `ConfigurationError` for a program that is not found.
 */
export function findProgram(
  tool: string,
  [name, { path, args, read = false, about }]: readonly [string, ShellProgram],
  { root, searched = process.env['PATH'] ?? '' }: { readonly root: string; readonly searched?: string },
): FoundProgram {
  const fault = (why: string): ConfigurationError =>
    new ConfigurationError(`The tool ${tool}: the program ${name} ${why}.`)
  if (!/^[A-Za-z0-9_.+-]{1,64}$/.test(name)) {
    throw new ConfigurationError(
      `The tool ${tool}: ${JSON.stringify(name.slice(0, 80))} is not the name of a program. Use letters, digits, _ . + and -, and give path for where it is.`,
    )
  }
  const found = { name, args, reads: read, about }
  if (path !== undefined) {
    if (!isAbsolute(path))
      throw fault(`has the path ${JSON.stringify(path)}, which is relative. Give an absolute path`)
    if (!isProgram(path))
      throw fault(`cannot be run: ${JSON.stringify(path)} is not a file that may be executed`)
    return { ...found, path }
  }
  for (const folder of searched.split(delimiter)) {
    const place = join(folder, name)
    if (!isAbsolute(folder) || !isProgram(place)) continue
    const real = realpathSync(folder)
    const isWithin = real === root || real.startsWith(root.endsWith(sep) ? root : root + sep)
    if (!isWithin) return { ...found, path: place }
  }
  throw fault('is in no folder of PATH outside the root. Install it, or give its path')
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

export interface ShellInput extends JsonObject {
  readonly program: string
  readonly args?: readonly string[]
  readonly cwd?: string
  readonly stdin?: string
}

const maxShownRules = 12

/** The schema of a call, which refuses arguments that are not allowed before a person is asked about them. */
export function createInputSchema(tool: string, programs: readonly FoundProgram[]): ReadSchema<ShellInput> {
  const { jsonSchema, parse } = readSchema(tool, describeInput(programs))
  return {
    jsonSchema,
    async parse(given) {
      const parsed = await parse(given)
      if (!parsed.ok) return parsed
      // The schema has been checked.
      const input = parsed.value as ShellInput
      const { program, args = [], stdin = '' } = input
      // No process can be given such texts.
      const issues = args.flatMap((arg, index): readonly InputIssue[] =>
        arg.includes('\0') ? [{ path: ['args', index], message: 'holds a NUL character' }] : [],
      )
      if (!stdin.isWellFormed()) issues.push({ path: ['stdin'], message: 'holds half of a surrogate pair' })
      const found = programs.find(({ name }) => name === program)
      if (found !== undefined && !isAllowed(found, args)) {
        const rules = describeRules(found)
        const message =
          rules === '' ? `${program} is not allowed with these arguments` : `only these are allowed: ${rules}`
        issues.push({ path: ['args'], message })
      }
      return issues.length > 0 ? { ok: false, issues } : { ok: true, value: input }
    },
  }
}

/** A function that throws has not allowed the arguments. */
function isAllowed({ args: allowed }: FoundProgram, args: readonly string[]): boolean {
  if (allowed === undefined) return true
  if (typeof allowed !== 'function') return allowed.some((rule) => isAllowedBy(rule, args))
  try {
    const answer: unknown = allowed([...args])
    return answer === true
  } catch {
    return false
  }
}

function isAllowedBy(rule: readonly string[] | OpenArguments, args: readonly string[]): boolean {
  const { first, more } = 'first' in rule ? rule : { first: rule, more: undefined }
  if (!first.every((arg, index) => args[index] === arg)) return false
  const others = args.slice(first.length)
  return more === true || others.every((arg) => more !== undefined && createWholeTest(more)?.(arg) === true)
}

/** Tries all of an argument: a pattern without anchors would let one pass that only holds what is meant. */
export function createWholeTest({ source, ignoreCase }: RegExp): ((arg: string) => boolean) | undefined {
  return createBoundedTest(`^(?:${source})$`, { ignoresCase: ignoreCase })
}

function describeRules({ name, args }: FoundProgram): string {
  if (args === undefined || typeof args === 'function') return ''
  const shown = args.slice(0, maxShownRules).map((rule) => {
    if (!('first' in rule)) return [name, ...rule].join(' ')
    return [name, ...rule.first, rule.more === true ? '…' : `[${rule.more.source} …]`].join(' ')
  })
  return shown.join(', ') + (args.length > maxShownRules ? ' and others' : '')
}

/** The programs in words, for the description of the tool. */
export function describePrograms(programs: readonly FoundProgram[]): string {
  const lines = programs.map((program) => {
    const rules = describeRules(program)
    const about = program.about === undefined ? '' : `: ${program.about.trim()}`
    return `- ${program.name}${about}${rules === '' ? '' : ` (only ${rules})`}`
  })
  return `The programs are:\n${lines.join('\n')}`
}

function describeInput(programs: readonly FoundProgram[]): JsonObject {
  return {
    type: 'object',
    required: ['program'],
    additionalProperties: false,
    properties: {
      program: { enum: programs.map(({ name }) => name), description: 'The program to run.' },
      args: {
        type: 'array',
        maxItems: 1_000,
        items: { type: 'string', maxLength: 100_000 },
        description:
          'Its arguments, one each, as they are: no shell reads them, so no quotes, pipes, * or $ have a meaning.',
      },
      cwd: {
        type: 'string',
        minLength: 1,
        maxLength: maxPathCharacters,
        description: 'The folder to run it in, relative to the root folder. Default: the root folder.',
      },
      stdin: {
        type: 'string',
        maxLength: 1_000_000,
        description: 'The text of its standard input. Default: no input.',
      },
    },
  }
}
